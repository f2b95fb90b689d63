"""Rows that are evaluated were trained on.

Rows are known again by their values. `kind`: "leak" where a part of the evaluated rows was trained on before, batch
after batch; "same-data" where all of them were: that can be meant (accuracy on the training set) and is reported as
low.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SHARE, ROWS, BATCHES, TIMES = 0.03, 8, 1, 3.0

RULE = Rule(
    id="J803",
    name="jax-evaluated-rows",
    title="Evaluation samples are in the training data",
    severity=Severity.HIGH,
    sees="rows of the batches of the step that is differentiated, and of those of functions that evaluate its state",
    matters="the metric counts what was memorised: the model is worse than it says",
    alike=("accuracy that is measured on the training set on purpose", "rows of few values: they recur by nature"),
    confirm=("Compare the ids, or a hash of each sample, of both data sets before training.",),
    thresholds={"share": Threshold(SHARE, "of the evaluation's rows", "public data sets hold doubles of 1 to 3 %"),
                "times": Threshold(TIMES, "times what recurs by nature", "within training batches")},
)


def check(function: str, place: tuple[str, int] | None, seen: Mapping[str, int], by_nature: float) -> Iterator[Finding]:
    """At most one finding. `seen` as `rows.overlap.Overlaps.counted` gives it."""
    file, line = place or (None, None)
    where = Location(file=file, line=line, module=function)
    rows, known = seen["part rows"], seen["part known"]
    if seen["part"] >= BATCHES and known >= max(ROWS, SHARE * rows, TIMES * by_nature * rows):
        yield RULE.finding(
            f"{known} of {rows} rows in {seen['part']} evaluated batches are rows that {function} was trained on "
            f"({known / rows:.0%})", where, "the running process", bearing=Bearing.CAUSE,
            measured={"kind": "leak", "share": round(known / rows, 4), "rows": known, "function": function})
    elif seen["batches"] >= BATCHES and seen["all"] == seen["batches"] and by_nature < 0.5:
        yield RULE.finding(
            f"all {seen['batches']} evaluated batches consist of rows that {function} was trained on", where,
            "the running process", bearing=Bearing.CAUSE, severity=Severity.LOW,
            measured={"kind": "same-data", "share": 1.0, "rows": seen["known"], "function": function})
