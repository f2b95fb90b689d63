"""The model's output is normalised over the samples of the batch instead of over the classes.

Read from the graph behind the loss: the softmax or log-softmax that takes the model's output (or that the model ends
with) runs over axis 0 of (batch, classes). Then the probabilities of one class over all samples sum to one, and the
loss of an untrained model is ln(batch), not ln(classes). A matrix of similarities between the samples themselves
(contrastive losses) is square and left alone, and so is one score a sample (a ranking within the batch).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: losses"
CALLS = 3

RULE = Rule(
    id="T412",
    name="softmax-over-batch",
    title="The output is normalised over the batch",
    severity=Severity.HIGH,
    sees="the axis of the softmax behind the loss that takes the model's output, and the first loss",
    matters="samples compete with each other: what is minimised is not the loss of the classes",
    alike=("contrastive losses: their matrix is square", "a ranking of the samples of a batch: one score each",
           "a model without a batch axis: its output has one axis"),
    confirm=("print(probabilities.sum(0)[:4], probabilities.sum(1)[:4])  # which of them is 1",
             "print(first_loss, math.log(batch_size), math.log(classes))"),
    thresholds={"calls": Threshold(CALLS, "backward passes, all of which agree", "one odd batch may be square")},
)


@dataclass(frozen=True)
class Normalised:
    """One backward pass: the softmax's input has `rows` samples and `classes` columns and is normalised over `axis`."""

    rows: int
    classes: int
    axis: int
    loss: float
    log: bool
    file: str | None = None
    line: int | None = None
    step: int = 0


def check(seen: Sequence[Normalised], rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    if len(seen) < CALLS or any(n.axis != 0 or n.rows == n.classes or min(n.rows, n.classes) < 2 for n in seen):
        return
    first = seen[0]
    over_rows, over_classes = math.log(first.rows), math.log(first.classes)
    fits = math.isfinite(first.loss) and abs(first.loss - over_rows) < 0.5 * abs(first.loss - over_classes)
    begins = (f"; the first loss, {first.loss:.4g}, is near ln({first.rows}) = {over_rows:.4g}, a guess over the "
              f"samples, and not near ln({first.classes}) = {over_classes:.4g}, one over the classes") if fits else ""
    yield RULE.finding(
        f"the model's output of shape ({first.rows}, {first.classes}) goes through a {'log-' * first.log}softmax over "
        f"axis 0, the batch, in all {len(seen)} backward passes that were looked at{begins}",
        Location(file=first.file, line=first.line, step=float(first.step), rank=rank), SOURCE,
        bearing=Bearing.CAUSE if fits else Bearing.SIGN,
        measured={"rows": first.rows, "classes": first.classes, "loss": first.loss, "calls": len(seen),
                  "kind": "fits" if fits else "axis"})
