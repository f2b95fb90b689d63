"""Backward passes fill gradients, an optimizer holds them, and nobody steps.

No optimizer of the program ever stepped, at least one that exists holds parameters with gradients, and these parameters
have the values that they began with. Programs that update by hand move their parameters; programs that only look at
gradients (saliency, attacks) have no optimizer. Steps that a GradScaler left out are another matter: they were asked
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.course import SOURCE, at_line
from traindx_tools.rules import Rule, Threshold

BACKWARDS = 5

RULE = Rule(
    id="T311",
    name="never-stepped",
    title="Gradients are computed and no optimizer ever steps",
    severity=Severity.CRITICAL,
    sees="backward passes, steps of all optimizers, optimizers that exist, and whether their parameters moved",
    matters="nothing is learned",
    alike=("updates by hand under no_grad", "gradients that are only looked at: no optimizer is made"),
    confirm=("print(len(optimizer.state))  # 0 after training",),
    thresholds={"backwards": Threshold(BACKWARDS, "backward passes", "fewer may be one window of an accumulation")},
)


@dataclass(frozen=True)
class Unstepped:
    """A program without any optimizer step."""

    backwards: int
    steps: int
    scaled: bool
    """A GradScaler was asked to step."""
    optimizer: str
    """The class of one that exists and holds parameters with gradients, "" where there is none."""
    held: int
    moved: int
    """Of the values it holds, those of parameters that changed."""
    line: str | None
    """Where backward was called."""
    rank: int = 0


def check(seen: Unstepped | None) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.steps or seen.scaled or seen.backwards < BACKWARDS or not seen.optimizer or seen.moved:
        return
    yield RULE.finding(
        f"{seen.backwards} backward passes and no step of any optimizer: the {seen.optimizer} that holds {seen.held:,} "
        "values with gradients was never asked to step, and none of them changed", at_line(seen.line, 0, seen.rank),
        SOURCE, bearing=Bearing.CAUSE,
        measured={"backwards": seen.backwards, "optimizer": seen.optimizer, "values": seen.held})
