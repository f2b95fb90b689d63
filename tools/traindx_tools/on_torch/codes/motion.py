"""Does a codebook move, and do codes that were revived stay where they were put?

Each code is watched through its product with one fixed random vector: a number a code and step, on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

JUMP = 0.5
"""A code jumps when it moves by this share of its codebook's spread (standard deviation over codes) in one step."""
BACK = 0.25
"""It is back when it stands within this share of the jump from where it was."""
OFTEN = 0.25
"""A code is moved again and again when it jumps in this share of the steps, and at least five times."""


@dataclass(frozen=True)
class Motion:
    """Over `steps` steps: share of codes that ever `moved`, `jumps`, those undone one step later (`back`), and codes
    that were moved again and again (`restless`)."""

    steps: int
    moved: float
    jumps: int
    back: int
    restless: int


class CodebookMotion:
    """Accumulates, without synchronising, by code: whether it ever moved, how often it jumped, how often back."""

    def __init__(self, table: torch.Tensor) -> None:
        generator = torch.Generator().manual_seed(0)
        width = table.shape[1]
        self._probe = (torch.randn(width, generator=generator) / width**0.5).to(table.device)
        self._history = [self._project(table)]
        self._moved = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        self._jumps = torch.zeros(len(table), device=table.device)
        self._returned = torch.zeros(len(table), dtype=torch.bool, device=table.device)
        self._back = torch.zeros((), device=table.device)
        self.steps = 0

    def _project(self, table: torch.Tensor) -> torch.Tensor:
        return torch.mv(table.detach().float(), self._probe)

    def step(self, table: torch.Tensor) -> None:
        """Takes the table after an optimizer step."""
        self.steps += 1
        self._history = [*self._history[-2:], self._project(table)]
        change = (self._history[-1] - self._history[-2]).abs()
        self._moved |= change > 0
        if len(self._history) < 3:
            return
        before, between, now = self._history
        size = (between - before).abs()
        jumped = (size > JUMP * before.std().clamp_min(1e-12)) & ~self._returned  # the way back is no jump of its own
        back = jumped & ((now - before).abs() < BACK * size)
        self._returned = back
        self._jumps += jumped
        self._back += back.sum()

    def read(self) -> Motion:
        """What was seen so far. Reads the device."""
        often = (self._jumps >= 5) & (self._jumps >= OFTEN * max(1, self.steps - 1))
        return Motion(self.steps, float(self._moved.float().mean()), int(self._jumps.sum()), int(self._back),
                      int(often.sum()))
