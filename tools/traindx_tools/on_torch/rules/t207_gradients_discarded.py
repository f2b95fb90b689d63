"""Gradients of a backward pass are thrown away before the optimizer takes them.

Several backward passes belong to one step, and the gradients of all but the last are set to zero or None before the
next pass adds its own: the step is made of the last micro-batch alone. `zero_grad` stands inside the accumulation
window, or a second one (of the model) is not held back like the first. Programs with several optimizers, and passes
between which the weights are changed (sharpness-aware minimisation), are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: accumulation"
STEPS, SHARE = 3, 0.8

RULE = Rule(
    id="T207",
    name="gradients-discarded",
    title="Gradients are thrown away within an accumulation window",
    severity=Severity.CRITICAL,
    sees="one weight's gradient before each backward pass, where several passes belong to one step",
    matters="a fraction of the data is used; what comes last in the window is all that is learned",
    alike=("two losses that are meant to be taken apart with autograd.grad", "optimizers that take turns"),
    confirm=("Print one weight's gradient norm after each backward pass of a window: it must grow.",),
    thresholds={"share": Threshold(SHARE, "of the windows with several passes", "a skipped batch is one of many"),
                "steps": Threshold(STEPS, "such windows", "one may be a warm-up")},
)


@dataclass(frozen=True)
class Windows:
    """Optimizer steps (`windows`) by what became of the gradients before them, for one watched weight."""

    windows: int
    several: int
    """Windows with more than one backward pass."""
    discarded: int
    """Of those, windows in which the gradient of an earlier pass was gone before the next."""
    passes: float
    """Backward passes a window, on average."""
    carried: int
    """Windows that began with the gradient of the step before."""
    judged: int
    """Windows whose beginning was looked at."""
    weight: str
    first_step: int
    last_step: int
    """The first and the last step that was looked at, counted from 1 as the run's own."""
    rank: int = 0
    discarded_at: tuple[int, int] | None = None
    """The first and the last step before which a gradient was thrown away; None where that was not noted."""
    carried_at: tuple[int, int] | None = None
    """The first and the last step whose window began with the gradient of the one before."""

    def at(self, steps: tuple[int, int] | None) -> Location:
        """The watched weight and these steps; all that were looked at where none are named."""
        first, last = steps or (self.first_step, self.last_step)
        return Location(module=self.weight, step=float(first), end_step=float(last), rank=self.rank)


def check(seen: Windows) -> Iterator[Finding]:
    """At most one finding."""
    if seen.several < STEPS or seen.discarded < SHARE * seen.several:
        return
    yield RULE.finding(
        f"in {seen.discarded} of {seen.several} windows of {seen.passes:.3g} backward passes each, the gradient of "
        f"{seen.weight} was set back between the passes: each step is made of the last pass alone",
        seen.at(seen.discarded_at), SOURCE, bearing=Bearing.CAUSE,
        measured={"passes": round(seen.passes, 2), "windows": seen.several, "discarded": seen.discarded,
                  "module": seen.weight})
