"""Dropout that stays on in evaluation mode: two calls with other random numbers differ, and a dropout drew them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from traindx_tools.on_torch.captured.trial import SEED, Trial, change_of
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.places import Place, here

_DROPOUTS = ("dropout", "bernoulli")


@dataclass(frozen=True)
class Random:
    """Where it was drawn, and the largest change of the output in standard deviations."""

    file: str | None
    line: int | None
    largest: float


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the lines at which a dropout draws."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places: list[Place | None] = []
        self.others = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            if any(word in ops.base_name(func) for word in _DROPOUTS):
                self.places.append(here())
            else:
                self.others += 1
        return func(*args, **(kwargs or {}))


def random_in_evaluation(trial: Trial) -> Random | None:
    """None where the output repeats, or where what is drawn are samples (a latent, noise, a mask to be learned)."""
    draws = _Draws()
    with draws:
        trial.ask(trial.call)
    if not draws.places or draws.others:
        return None
    again = trial.ask(trial.call, seed=SEED + 1)
    largest = max((float(change_of(a, b).max()) for a, b in zip(trial.base, again, strict=True) if a.numel()),
                  default=0.0)
    place = draws.places[0]
    return Random(place.file if place else None, place.line if place else None, largest) if largest else None
