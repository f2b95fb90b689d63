"""Parameters that require no gradient change in the optimizer's step.

They were frozen after the optimizer had been built and keep an old gradient, a momentum or a weight decay: the step
still changes them. A teacher that follows by an average is in no optimizer and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.movement import SOURCE, Movement, listed
from traindx_tools.rules import Rule, Threshold

STEPS = 2

RULE = Rule(
    id="T306",
    name="frozen-moves",
    title="Frozen parameters change in the optimizer's step",
    severity=Severity.HIGH,
    sees="sampled values of parameters with `requires_grad=False` that an optimizer holds, around its steps",
    matters="what was meant to stay as it is drifts, by weight decay or old momentum alone",
    alike=("a teacher or a target network that follows by an average: in no optimizer",),
    confirm=("Build the optimizer after freezing, from parameters that require a gradient; they stay bit by bit.",),
    thresholds={"steps": Threshold(STEPS, "measured steps", "one could be the step in which it was frozen")},
)


def check(movements: Sequence[Movement]) -> Iterator[Finding]:
    """One finding for all of them."""
    these = [m for m in movements if not m.trainable and m.steps >= STEPS and m.moved and m.step_still < 1.0]
    if these:
        first = these[0]
        yield RULE.finding(
            f"{listed([m.path for m in these])} require no gradient and change by {first.ratio:.2g} of their size in a "
            f"step of the optimizer", first.at(), SOURCE, bearing=Bearing.CAUSE,
            measured={"module": first.path, "parameters": len(these), "ratio": first.ratio})
