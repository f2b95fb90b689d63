"""Copies of modules and optimizers to run a step on, so that the program's own are not touched.

Parameters, buffers, containers and Python numbers are copied; anything else that hangs on a module (a trainer, a
logger, a dataset) is shared and not looked into. Hooks of the program are left out: they may collect or print.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Copier:
    """Copies each object once; `of` tells what stands for a tensor or module of the program."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    def of(self, original: Any) -> Any:
        """The copy that was made of it, None where there is none."""
        held = self._made.get(id(original))
        return held[1] if held is not None else None

    def pairs(self, kind: type) -> list[tuple[Any, Any]]:
        """Originals and copies of a kind."""
        return [(o, c) for o, c in self._made.values() if isinstance(o, kind)]

    def module(self, module: torch.nn.Module) -> torch.nn.Module:
        """The module with all that is below it."""
        made = self.of(module)
        if made is not None:
            return made  # type: ignore[no-any-return]
        copy: torch.nn.Module = type(module).__new__(type(module))
        self._made[id(module)] = module, copy
        for name, value in vars(module).items():
            copy.__dict__[name] = _without_the_program_s(value) if name in _HOOKS else self.value(value)
        return copy

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """A leaf with the same values."""
        made = self.of(tensor)
        if made is None:
            made = tensor.detach().clone()
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, tensor.requires_grad)
            elif tensor.is_leaf:
                made.requires_grad_(tensor.requires_grad)
            self._made[id(tensor)] = tensor, made
        return made  # type: ignore[no-any-return]

    def value(self, value: Any) -> Any:
        """What hangs on a module."""
        if isinstance(value, torch.nn.Module):
            return self.module(value)
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, types.MethodType) and isinstance(value.__self__, torch.nn.Module):
            return types.MethodType(value.__func__, self.module(value.__self__))
        if isinstance(value, dict):
            copy = value.copy()
            for key, part in value.items():
                copy[key] = self.value(part)
            return copy
        if type(value) in (list, tuple, set):
            return type(value)(self.value(v) for v in value)
        return value


def optimizer_on(optimizer: torch.optim.Optimizer, groups: Sequence[Mapping[str, Any]],
                 state: Mapping[Any, Mapping[str, Any]]) -> torch.optim.Optimizer:
    """An optimizer of the same class on other groups and state, without the hooks of schedulers and of the program."""
    copy: Any = type(optimizer).__new__(type(optimizer))
    copier = Copier()
    for name, value in vars(optimizer).items():
        if name not in ("param_groups", "state", "step", "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
            copy.__dict__[name] = copier.value(value)
    copy._optimizer_step_pre_hooks, copy._optimizer_step_post_hooks = {}, {}
    copy.param_groups = [dict(g) for g in groups]
    copy.state = defaultdict(dict, {p: dict(s) for p, s in state.items()})
    return copy  # type: ignore[no-any-return]


def _without_the_program_s(hooks: Any) -> Any:
    """Only those hooks of torch itself: they belong to the computation (weight norm, spectral norm)."""
    kept = hooks.copy()
    for key, hook in hooks.items():
        if not str(getattr(hook, "__module__", None) or type(hook).__module__).startswith("torch."):
            del kept[key]
    return kept
