"""Whether a step that was run again shows the symptom, and what a change does to it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from traindx_tools.experiments.replaying.symptom import OVERSHOOT, SANE, Symptom

Word = Literal["removes", "moves", "no-effect", "untried"]
SAID = {"removes": "removes the symptom", "moves": "moves it", "no-effect": "no effect", "untried": "cannot be tried"}
MARGIN = 0.1
"""Of the value beyond the usual: a change that moves it by less does nothing, as in experiments of whole runs."""


@dataclass(frozen=True)
class Measured:
    """What one run of the step gave. `before`: the loss of the same batch with the parameters before the update."""

    before: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    update_norm: float | None = None
    parameters_finite: bool = True


@dataclass(frozen=True)
class Tried:
    """A change and what it came to; `why` in words. `measured` is None where it could not be tried."""

    change: str
    about: str
    word: Word
    why: str
    measured: Measured | None = None
    better: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite as text."""
        told = asdict(self)
        if self.measured is not None:
            told["measured"] = {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v
                                for k, v in asdict(self.measured).items()}
        return told


def shows(symptom: Symptom, measured: Measured) -> bool:
    """Whether the symptom is there."""
    if symptom.kind == "parameters":
        return not measured.parameters_finite
    value = value_of(symptom, measured)
    if value is None:
        return False
    if symptom.kind == "loss-rise":
        before = measured.before
        return before is not None and not value <= OVERSHOOT * before
    limit = symptom.most if symptom.finite and symptom.most is not None else math.inf
    return not (math.isfinite(value) and value <= limit)


def value_of(symptom: Symptom, measured: Measured) -> float | None:
    """The number that the symptom is about."""
    return measured.grad_norm if symptom.kind.startswith("gradient") else measured.loss


def judged(symptom: Symptom, control: Measured, changed: Measured) -> tuple[Word, str, bool | None]:
    """The word, why, and of an effect whether it goes the right way."""
    was, now = value_of(symptom, control), value_of(symptom, changed)
    told = f"{named(symptom)} {number(was)} -> {number(now)}"
    if symptom.kind == "parameters":
        told = f"parameters {_finite(control)} -> {_finite(changed)}"
    if not shows(symptom, changed):
        if symptom.kind != "parameters" and now is None:
            return "no-effect", f"{named(symptom)} was not measured", None
        if beyond := _beyond(symptom, changed, now):
            return "moves", f"{told}: finite, and {beyond}", True
        return "removes", told, True
    if symptom.finite and was is not None and now is not None:
        usual = control.before if symptom.kind == "loss-rise" else symptom.usual
        if not math.isfinite(now) or abs(now - was) > MARGIN * abs(was - (usual or 0.0)):
            return "moves", told, math.isfinite(now) and now < was
    return "no-effect", told, None


def named(symptom: Symptom) -> str:
    """What the number is called."""
    return "gradient norm" if symptom.kind.startswith("gradient") else "loss"


def number(value: float | None) -> str:
    """For a table."""
    return "-" if value is None else f"{value:.4g}"


def _beyond(symptom: Symptom, changed: Measured, now: float | None) -> str:
    """Why a value that does not show the symptom is no sane one, "" where it is."""
    value = now if symptom.kind != "parameters" else changed.loss
    if value is None:
        return ""
    if symptom.kind == "loss-rise":  # the update no longer does harm only where it does good
        above = changed.before is not None and value > changed.before
        return f"above the {changed.before:.4g} before the update" if above else ""
    limit = symptom.most
    if symptom.finite and symptom.sane is not None:
        before = changed.before if symptom.kind == "loss-jump" and changed.before is not None else 0.0
        limit = SANE * max(symptom.sane, before if before <= (symptom.most or 0.0) else 0.0)
    return f"far beyond the usual {symptom.usual:.3g}" if limit is not None and not value <= limit else ""


def _finite(measured: Measured) -> str:
    return "finite" if measured.parameters_finite else "not finite"
