"""Prediction and target have different shapes, and the loss compares every prediction with every target.

A prediction of shape (B, 1) against a target of shape (B,) becomes (B, B) by broadcasting: the loss is smallest when
every prediction is the mean of the targets, and that is what is learned. The graph of the loss remembers both after the
broadcast: a dimension that was stretched has a stride of 0. `kind`: "loss" where a regression loss stretched both
sides, "difference" where a difference with one side that has a gradient did so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.batches import SOURCE
from traindx_tools.rules import Rule

RULE = Rule(
    id="T709",
    name="target-broadcast",
    title="The loss broadcasts predictions against targets",
    severity=Severity.CRITICAL,
    sees="shapes and strides of what a regression loss compared, from its graph",
    matters="the best answer is the mean of all targets: R2 stays at 0 whatever the model could do",
    alike=("a matrix of pairs that is meant (ranking, contrastive losses): both sides have a gradient",),
    confirm=("print(prediction.shape, target.shape)  # before the loss",),
)


@dataclass(frozen=True)
class Broadcast:
    """What was compared after the broadcast, and what the prediction was before."""

    kind: str
    prediction: tuple[int, ...]
    result: tuple[int, ...]
    steps: int
    step: int
    rank: int = 0
    file: str | None = None
    line: int | None = None
    """Where the loss was called, where that is known."""


def check(seen: Broadcast | None) -> Iterator[Finding]:
    """One finding, if there was one in at least two measured steps."""
    if seen is None or seen.steps < 2:
        return
    where = Location(file=seen.file, line=seen.line, step=float(seen.step), rank=seen.rank)
    yield RULE.finding(
        f"a prediction of shape {list(seen.prediction)} is compared with a target over {list(seen.result)}: each "
        f"prediction meets every target ({seen.steps} measured steps)", where, SOURCE,
        bearing=Bearing.CAUSE if seen.kind == "loss" else Bearing.SIGN,
        severity=Severity.CRITICAL if seen.kind == "loss" else Severity.HIGH,
        measured={"kind": seen.kind, "prediction": str(list(seen.prediction)), "result": str(list(seen.result))})
