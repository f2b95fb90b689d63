"""Gradients are never set back: each step adds to those of all steps before.

When the first backward pass after a step begins, the gradient that the step took is still there, value by value.
`zero_grad` is missing, or is called on another optimizer or model. The gradient becomes the sum over the whole run: the
effective learning rate grows with every step, and what old batches said is said again and again.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.t207_gradients_discarded import SOURCE, Windows
from traindx_tools.rules import Rule, Threshold

STEPS, SHARE = 5, 0.9

RULE = Rule(
    id="T208",
    name="gradients-carried",
    title="Gradients are never set back to zero",
    severity=Severity.CRITICAL,
    sees="one weight's gradient when a step is taken and when the next backward pass begins",
    matters="the step is the sum over all batches so far: the loss swings and grows",
    alike=("accumulation over several passes: set back after the step", "optimizers that take turns: not judged"),
    confirm=("Print one weight's gradient norm after each backward pass: it grows from step to step.",),
    thresholds={"share": Threshold(SHARE, "of at least 5 steps", "a program that forgets it once is no fault yet")},
)


def check(seen: Windows) -> Iterator[Finding]:
    """At most one finding."""
    if seen.judged < STEPS or seen.carried < SHARE * seen.judged:
        return
    yield RULE.finding(
        f"in {seen.carried} of {seen.judged} steps the gradient of {seen.weight} that the step before had taken was "
        "still there when the next backward pass began: it is never set back", seen.at(seen.carried_at), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"carried": seen.carried, "steps": seen.judged, "module": seen.weight})
