"""A training run with one planted origin of a non-finite value, and what small runs are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

MARK = "# <- origin"
BAD_STEP = 4


@dataclass(frozen=True)
class Planted:
    """A run, the operation that is to be named (its beginning), the phase, the reason, and the line."""

    name: str
    run: Callable[[], None]
    op: str
    phase: str
    reason: str
    file: str
    line: int
    family: str
    module: str | None = None


PLANTED: list[Planted] = []


def planted(family: str, op: str, reason: str, phase: str = "forward", module: str | None = None) -> Callable[
        [Callable[[], None]], Callable[[], None]]:
    def add(run: Callable[[], None]) -> Callable[[], None]:
        lines, first = inspect.getsourcelines(run)
        here = [first + i for i, text in enumerate(lines) if MARK in text]
        assert len(here) == 1, run
        file = Path(inspect.getfile(run)).name
        PLANTED.append(Planted(run.__name__, run, op, phase, reason, file, here[0], family, module))
        return run

    return add


def mlp(inputs: int = 6, hidden: int = 8, outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def fit(model: nn.Module, loss_of: Callable[[int], Tensor], steps: int = 7, lr: float = 0.05) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(steps):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def at_bad(step: int, tensor: Tensor, factor: float = 0.0) -> Tensor:
    """The tensor, scaled in the bad step."""
    return tensor * factor if step == BAD_STEP else tensor
