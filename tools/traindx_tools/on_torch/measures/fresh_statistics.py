"""Normalisation layers whose weights came with a state and whose running statistics did not.

Called in evaluation mode they normalise with mean 0 and variance 1, which no layer that was trained has.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import torch
from torch.nn.modules.batchnorm import _BatchNorm


@dataclass(eq=False)
class FreshStatistics:
    """Of one call of `load_state_dict`. `names`: of the layers; `used`: of those that were called so."""

    names: tuple[str, ...]
    used: list[str] = field(default_factory=list)
    _waiting: list[tuple[str, weakref.ref[torch.nn.Module], int]] = field(default_factory=list)
    """Name, module, and the version of its running mean: one that is filled by hand later has another."""

    @classmethod
    def left_by(cls, owner: torch.nn.Module, missing: Collection[str], given: Collection[str]
                ) -> FreshStatistics | None:
        """What a state left out, None where nothing of that kind."""
        left, there = frozenset(missing), frozenset(given)
        waiting: list[tuple[str, weakref.ref[torch.nn.Module], int]] = []
        for name, module in owner.named_modules():
            if isinstance(module, _BatchNorm) and module.running_mean is not None and f"{name}.weight" in there and {
                    f"{name}.running_mean", f"{name}.running_var"} <= left:
                waiting.append((name, weakref.ref(module), _version(module)))
        return cls(tuple(name for name, _, _ in waiting), [], waiting) if waiting else None

    def called(self, inside: Collection[int]) -> None:
        """A model of these modules (by `id`) is called: in training mode its statistics come by themselves."""
        self._waiting = list(self._after(inside))

    def _after(self, inside: Collection[int]) -> Iterator[tuple[str, weakref.ref[torch.nn.Module], int]]:
        for name, known, version in self._waiting:
            module = known()
            if module is None or _version(module) != version or (id(module) in inside and module.training):
                continue
            if id(module) in inside:
                self.used.append(name)
            else:
                yield name, known, version


def _version(module: torch.nn.Module) -> int:
    mean = module.running_mean
    return int(mean._version) if isinstance(mean, torch.Tensor) else -1
