"""Samples of the evaluation were trained on.

Rows of the batches that the model was trained on are remembered by a key of their values, and compared with those of
the batches it is evaluated on, once an epoch of the training data has been seen. `kind`: "leak" where a part of the
evaluation's rows is known, batch after batch; "same-data" where all of it is: that can be meant (accuracy on the
training set) and is reported as low.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, at
from traindx_tools.rules import Rule, Threshold

SHARE, ROWS, BATCHES, ALL = 0.03, 8, 2, 0.95

RULE = Rule(
    id="T711",
    name="data-leak",
    title="Evaluation samples are in the training data",
    severity=Severity.HIGH,
    sees="keys of the rows of training batches and of evaluation batches, from up to 64 values a row",
    matters="the metric counts what was memorised: the model is worse than it says",
    alike=("accuracy that is measured on the training set on purpose", "data sets with doubles of their own"),
    confirm=("Compare the ids, or a hash of each sample, of both data sets before training.",),
    thresholds={"share": Threshold(SHARE, "of the evaluation's rows", "public data sets hold doubles of 1 to 3 %")},
)


@dataclass(frozen=True)
class Overlap:
    """Evaluation batches that were compared, and those of them of which nearly all rows, or a part, are known."""

    batches: int
    rows: int
    known: int
    nearly_all: int
    """Batches of which 95 % and more are known."""
    partly: int
    partly_rows: int
    partly_known: int
    step: int
    rank: int = 0


def check(seen: Overlap) -> Iterator[Finding]:
    """At most one finding."""
    if seen.partly >= BATCHES and seen.partly_known >= ROWS and seen.partly_known >= SHARE * seen.partly_rows:
        yield RULE.finding(
            f"{seen.partly_known} of {seen.partly_rows} rows in {seen.partly} evaluation batches are rows that were "
            f"trained on ({seen.partly_known / seen.partly_rows:.0%})", at(seen.step, seen.rank), SOURCE,
            bearing=Bearing.CAUSE,
            measured={"kind": "leak", "share": round(seen.partly_known / seen.partly_rows, 4),
                      "rows": seen.partly_known})
    elif seen.batches >= BATCHES and seen.nearly_all == seen.batches:
        yield RULE.finding(
            f"all {seen.batches} evaluation batches consist of rows that were trained on", at(seen.step, seen.rank),
            SOURCE, bearing=Bearing.CAUSE, severity=Severity.LOW,
            measured={"kind": "same-data", "share": 1.0, "rows": seen.known})
