"""State that training changes, evaluation reads, and `state_dict` leaves out: plain attributes of modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.captured.trial import Trial, change_of

MOST_VALUES = 10**6
MOST_ASKED = 6
Place = tuple[str, str]
"""The path of a module, and the name of its attribute."""


@dataclass(frozen=True)
class Unsaved:
    """One attribute: how far the output changes, in standard deviations, when it is set back to its first value."""

    module: str
    name: str
    kind: str
    """"tensor", "number" or "buffer" (one that is not persistent)."""
    largest: float
    training: bool = False
    """Only the output in training mode changes: the evaluated model is the one that was saved, a resumed run is not."""


def plain_state(model: torch.nn.Module) -> dict[Place, Any]:
    """Floating tensors and numbers that hang on modules and are not in the state; copies."""
    found: dict[Place, Any] = {}
    for path, module in model.named_modules():
        if type(module).__module__.startswith("torch."):
            continue
        for name, value in (*vars(module).items(), *_not_persistent(module)):
            if name != "training" and _is_state(value):
                found[path, name] = value.detach().clone() if isinstance(value, torch.Tensor) else value
    return found


def unsaved(trial: Trial, initial: Mapping[Place, Any], now: Mapping[Place, Any]) -> Unsaved | None:
    """The first attribute that changed since the model was met and that the output depends on: in evaluation, or else
    in training mode."""
    modules = dict(trial.model.named_modules())
    changed = [p for p, value in now.items() if p in initial and _differs(initial[p], value)]
    asked = [(modules[path], path, name) for path, name in changed[:MOST_ASKED]
             if path in modules and not _is_of_the_batch(now[path, name], trial)]
    for training in (False, True):
        base = trial.ask(trial.call, train=True) if training and asked else trial.base
        for module, path, name in asked:
            after = trial.ask_with(module, name, initial[path, name], train=training)
            largest = max((float(change_of(a, b).max()) for a, b in zip(base, after, strict=True)
                           if a.numel() and a.shape == b.shape), default=0.0)
            if largest > 0:
                kind = "buffer" if name in dict(_not_persistent(module)) else (
                    "tensor" if isinstance(now[path, name], torch.Tensor) else "number")
                return Unsaved(path or type(trial.model).__name__, name, kind, largest, training)
    return None


def _not_persistent(module: torch.nn.Module) -> list[tuple[str, Any]]:
    return [(n, module._buffers[n]) for n in module._non_persistent_buffers_set if n in module._buffers]


def _is_state(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and 0 < value.numel() <= MOST_VALUES and type(value) is torch.Tensor
    return type(value) in (int, float)


def _differs(first: Any, now: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return isinstance(now, torch.Tensor) and first.shape == now.shape and not torch.equal(
            first.to(now.device), now)
    return not isinstance(now, torch.Tensor) and bool(first != now)


def _is_of_the_batch(value: Any, trial: Trial) -> bool:
    """A hidden state that is carried from batch to batch has a row for each sample."""
    sizes = {trial.rows, trial.full_rows}
    return isinstance(value, torch.Tensor) and value.ndim >= 2 and bool(sizes & set(value.shape[:2]))
