"""What went wrong in a step, and what would have been usual: from the losses and gradient norms before it.

A loss or norm jumps where it is far above everything of the last fifty steps; it has risen where it is well above all
that the untrained model gave. Losses of both signs have no scale, and only what is not finite is seen of them.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

Kind = Literal["loss", "gradient", "parameters", "loss-jump", "gradient-jump", "loss-rise"]

SAID = {"loss": "the loss is {value}", "gradient": "the gradient is not finite",
        "parameters": "the optimizer's step leaves parameters that are not finite",
        "loss-jump": "the loss jumps to {value}", "gradient-jump": "the gradient norm jumps to {value}",
        "loss-rise": "the loss has risen to {value}, and the last update raises it"}

NEAR = 50
"""Steps that are compared with."""
FIRST = 10
"""Steps of the untrained model."""
SETTLED = 20
"""Steps before which only a far larger jump counts: an untrained model's loss falls and swings."""
JUMP, EARLY_JUMP = 5.0, 20.0
"""Times the largest of the steps before. Batches of sane runs differ by less, but for heavy tails."""
GRADIENT_JUMP = 20.0
"""As above; norms of sane runs spike ten times now and then."""
RISE = 2.0
"""Times the largest loss of the first steps: worse than an untrained model by more than its own spread."""
OVERSHOOT = 1.1
"""Times the loss of the same batch before an update: from there on the update did harm that is not rounding or chance
of dropout, which draws the same numbers both times."""
SANE = 1.5
"""Times the largest of the steps before, or the same batch's loss before the update: up to there a jump is gone."""
LATE = 100.0
"""Times the median of the steps before (early: the smallest): a loss that stands so high went wrong earlier."""


@dataclass(frozen=True)
class Symptom:
    """What was seen at a step (1 is the first). `usual` and `most`: median and largest sane value, None if unknown."""

    kind: Kind
    step: int
    value: float
    usual: float | None = None
    most: float | None = None
    sane: float | None = None
    """The largest value of the steps before."""
    late: bool = False
    """The losses before it had left the usual long ago: this step is an end and no origin."""

    @property
    def finite(self) -> bool:
        """Whether it is a number that is too large, instead of one that is not finite."""
        return self.kind in ("loss-jump", "gradient-jump", "loss-rise")

    @property
    def said(self) -> str:
        """In words, with the value."""
        usual = f" (usual: {self.usual:.3g})" if self.usual is not None and self.kind not in (
            "parameters", "gradient") else ""
        return SAID[self.kind].format(value=f"{self.value:.4g}") + usual


@dataclass
class Course:
    """The losses and gradient norms so far, of which the last ones are kept."""

    losses: deque[float] = field(default_factory=lambda: deque(maxlen=NEAR))
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=NEAR))
    untrained: float = 0.0
    """The largest loss of the first steps."""
    seen: int = 0
    signed: bool = False
    """A loss was not positive."""

    def loss(self, value: float, step: int) -> Symptom | None:
        """Takes in the loss of a step; what is wrong with it, None where nothing is."""
        found = self._of_loss(value, step)
        if math.isfinite(value):
            self.signed = self.signed or value <= 0.0
            self.losses.append(value)
            if self.seen < FIRST and found is None:
                self.untrained = max(self.untrained, value)
            self.seen += 1
        return found

    def norm(self, value: float, step: int) -> Symptom | None:
        """The same for the norm of the gradients that an optimizer takes."""
        found = None
        if not math.isfinite(value):
            found = self.symptom("gradient", step, value)
        elif len(self.norms) >= SETTLED and value > GRADIENT_JUMP * max(self.norms) > 0.0:
            found = self.symptom("gradient-jump", step, value)
        if math.isfinite(value):
            self.norms.append(value)
        return found

    def symptom(self, kind: Kind, step: int, value: float) -> Symptom:
        """One of this kind beside what is usual."""
        values, factor = (self.norms, GRADIENT_JUMP) if kind.startswith("gradient") else (self.losses, self._jump)
        known = bool(values) and not self.signed
        sane = max(values) if known else None
        usual, most = (median(values), factor * max(values)) if known else (None, None)
        if kind == "loss-rise" and values:
            usual, most = min(values), self.untrained
        late = kind not in ("loss-jump", "loss-rise") and self._late()
        return Symptom(kind, step, value, usual, most, sane, late)

    def back(self, symptom: Symptom) -> bool:
        """Whether the last losses are again what was usual before."""
        if symptom.most is None or symptom.kind == "gradient-jump":
            return True
        last = list(self.losses)[-3:]
        usual = symptom.usual if symptom.usual is not None else symptom.most
        before = symptom.most if symptom.kind == "loss-rise" else symptom.sane
        return bool(last) and max(last) <= max(2.0 * usual, before or 0.0)

    @property
    def _jump(self) -> float:
        return JUMP if self.seen >= SETTLED else EARLY_JUMP

    def _of_loss(self, value: float, step: int) -> Symptom | None:
        if not math.isfinite(value):
            return self.symptom("loss", step, value)
        if self.signed or not self.losses or value <= 0.0:
            return None
        if value > self._jump * max(self.losses):
            return self.symptom("loss-jump", step, value)
        risen = self.seen >= 3 and value > RISE * self.untrained and value > RISE * min(self.losses)
        return self.symptom("loss-rise", step, value) if risen else None

    def _late(self) -> bool:
        told = list(self.losses)
        if len(told) < 2 or self.signed:
            return False
        return told[-1] > LATE * (median(told[:-1]) if len(told) > FIRST else min(told))
