"""Accuracy stays where guessing would put it.

With C equally frequent classes a guess is right once in C times. An accuracy that stays within 15 % of 1/C over the
whole log, without a trend, belongs to a classifier whose outputs have nothing to do with its inputs. C comes from the
configuration, from the log, or from a loss that stays at ln C; no C is guessed from the accuracy alone, since every
accuracy is near one over something.

A balanced two-class accuracy of 50 % is the same finding with C = 2. An accuracy that starts at chance and rises is
healthy. Where training accuracy has risen and only the held-out one stays, see L208.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, drop, ending, head, noise, tail, trend
from traindx_tools.on_logs.curves.constants import explain
from traindx_tools.on_logs.curves.learning import (
    ClassCount,
    accuracy,
    class_counts,
    held_out_loss,
    is_reinforcement,
    main_loss,
    percent,
    span,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

NEAR = 0.15
RISE = 0.03
RECORDS = 4
LEARNS = 0.3

RULE = Rule(
    id="L211",
    name="accuracy-at-chance",
    title="Accuracy stays at chance",
    severity=Severity.HIGH,
    sees="accuracy over the log, the number of classes",
    matters="The classifier's outputs do not depend on its inputs.",
    alike=(
        "An accuracy that starts at chance and rises later, after a warm-up.",
        "Unequal classes: always saying the most frequent one gives more than 1/C and is no better.",
    ),
    confirm=(
        "Count the predicted classes over one evaluation: one class only, or all alike?",
        "Over-fit 32 samples: accuracy 1.0 rules out a broken model and points to the data.",
    ),
    thresholds={
        "near": Threshold(NEAR, "relative to 1/C", "about two standard errors at 10 classes and 2,000 samples"),
        "rise": Threshold(RISE, "fraction", "an accuracy that rises further is learning"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
        "learns": Threshold(LEARNS, "relative fall of the loss", "a loss that falls this far is learning something"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """A finding for the training accuracy, else for the held-out one, where no accuracy has left chance."""
    if is_reinforcement(run):
        return
    curves = [c for g in ("train", "validation", "test") if (c := accuracy(run, g)) is not None and len(c) >= RECORDS]
    counts = _counts(run) if curves else []
    if not counts or any(tail(c.values) > 2.0 / min(k.count for k in counts) for c in curves):
        return
    loss = main_loss(run)
    if loss is not None and len(curve(loss)) >= RECORDS and drop(curve(loss).values) >= LEARNS and (
            explain(run, loss) is None):
        return
    for c in curves:
        known = next((k for k in counts if _at_chance(c, k.count)), None)
        if known is not None:
            yield _finding(c, known)
            return


def _counts(run: Run) -> list[ClassCount]:
    found = [k for k in class_counts(run) if k.count <= 100_000]
    for loss in (main_loss(run), held_out_loss(run)):
        match = explain(run, loss) if loss is not None else None
        if match is not None and match.kind == "uniform-guess" and match.classes is not None:
            found.append(ClassCount(match.classes, f"{loss} stays at ln({match.classes})"))
    return found


def _at_chance(c: Curve, classes: int) -> bool:
    level, chance = tail(c.values), 1.0 / classes
    rising = level - head(c.values) > RISE and trend(c.values) > 2.0
    return abs(level - chance) <= NEAR * chance + min(noise(c.values), 0.3 * chance) and not rising


def _finding(c: Curve, known: ClassCount) -> Finding:
    start, end = c.where(0, len(c) - 1)
    return RULE.finding(
        f"{c.series} stays at {ending(c)}, chance over {known.count} classes is "
        f"{percent(1.0 / known.count)} ({known.why}), {span(c.series, start, end)}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        measured={"accuracy": tail(c.values), "accuracy_start": head(c.values), "classes": known.count,
                  "chance": 1.0 / known.count, "group": c.series.group, "records": len(c)},
    )
