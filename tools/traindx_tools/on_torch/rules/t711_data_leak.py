"""Samples of the evaluation were trained on.

Rows of the batches that the model was trained on are remembered by their values and, where a sampler says it, by their
number in the whole dataset, so that augmented rows are known again too. Those of the batches that it is evaluated on
count where they were trained on before. `kind`: "leak" where a part of the
evaluation's rows is known, batch after batch; "same-data" where all of it is: that can be meant (accuracy on the
training set) and is reported as low.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, at
from traindx_tools.rules import Rule, Threshold

SHARE, ROWS, BATCHES, TIMES = 0.03, 8, 2, 3.0

RULE = Rule(
    id="T711",
    name="data-leak",
    title="Evaluation samples are in the training data",
    severity=Severity.HIGH,
    sees="rows of training batches and of evaluation batches, by number in the dataset and by up to 128 values",
    matters="the metric counts what was memorised: the model is worse than it says",
    alike=("accuracy that is measured on the training set on purpose", "data sets with doubles of their own"),
    confirm=("Compare the ids, or a hash of each sample, of both data sets before training.",),
    thresholds={"share": Threshold(SHARE, "of the evaluation's rows", "public data sets hold doubles of 1 to 3 %"),
                "times": Threshold(TIMES, "times what recurs by nature", "within training batches")},
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
    by_nature: float = 0.0
    """Share of new rows that would be known by chance: rows of few values recur."""


def check(seen: Overlap) -> Iterator[Finding]:
    """At most one finding."""
    least = max(SHARE, TIMES * seen.by_nature) * seen.partly_rows
    if seen.partly >= BATCHES and seen.partly_known >= max(ROWS, least):
        yield RULE.finding(
            f"{seen.partly_known} of {seen.partly_rows} rows in {seen.partly} evaluation batches are rows that were "
            f"trained on ({seen.partly_known / seen.partly_rows:.0%})", at(seen.step, seen.rank), SOURCE,
            bearing=Bearing.CAUSE,
            measured={"kind": "leak", "share": round(seen.partly_known / seen.partly_rows, 4),
                      "rows": seen.partly_known})
    elif seen.batches >= BATCHES and seen.nearly_all == seen.batches and seen.by_nature < 0.5:
        yield RULE.finding(
            f"all {seen.batches} evaluation batches consist of rows that were trained on", at(seen.step, seen.rank),
            SOURCE, bearing=Bearing.CAUSE, severity=Severity.LOW,
            measured={"kind": "same-data", "share": 1.0, "rows": seen.known})
