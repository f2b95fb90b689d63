"""An accuracy, recall or other score is the same to the last printed digit in every record, while the loss moves.

A score that counts right answers repeats exactly only if every answer stays the same. If the loss nevertheless moves a
little, what trains cannot change an answer: a temperature, a bias, a scale, the last layer's offset, while the trunk or
the head is frozen, detached, or in no optimizer. If the loss only scatters with its batches, nothing trains. Both are
told apart in `measured.pace`: "crawl" for a loss that goes steadily one way, "still" for one that does not.

A loss that falls by more than a few per cent over the same records is learning, and the score is only too coarse to
show it yet; scores of exactly 0 or 1 say nothing and are left alone. Where the held-out loss repeats too, L215 reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, constant, curve, drop, fraction, noise, ratio, spread, trend
from traindx_tools.on_logs.curves.learning import (
    class_counts,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    percent,
    span,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

RECORDS, FALL, TREND, STEADY = 5, 0.05, 2.0, 3.0

RULE = Rule(
    id="L216",
    name="metric-exactly-constant",
    title="A score never changes by a digit while the loss moves",
    severity=Severity.HIGH,
    sees="accuracies, recalls and other scores over the whole log, with the course of the loss beside them",
    matters="Nothing that could change an answer is trained; a higher learning rate or more epochs change nothing.",
    alike=(
        "A model that gives one class for every input, early in training on unbalanced classes: its loss falls.",
        "An evaluation of another model than the one that trains: its own loss repeats as well (L215).",
        "A learning rate of zero.",
    ),
    confirm=(
        "List what trains: print([n for n, p in model.named_parameters() if p.requires_grad]).",
        "Compare every parameter before and after one step: (after - before).abs().max() by name.",
    ),
    thresholds={
        "records": Threshold(RECORDS, "records", "fewer repeat by chance on a small held-out set"),
        "fall": Threshold(FALL, "relative fall of the loss", "more than that is learning"),
        "steady": Threshold(STEADY, "Mann-Kendall z", "a loss that goes one way, not one that scatters"),
    },
)

SCORES = re.compile(r"^(?:accuracy|f1|auc|recall|precision|iou|map|dice|bleu|rouge|exact|top_?\d|hit|mrr|ndcg|em\b|"
                    r"balanced_accuracy|r_at|p_at)")
"""Canonical names of scores that count right answers."""


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the score with most records."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    rate = run.first("learning_rate")
    if rate is not None and len(curve(rate)) and not curve(rate).values[1:].any():
        return
    scores = [curve(s) for s in run.series if SCORES.match(s.name) and s.rank in (None, 0)]
    repeated = [c for c in scores if _repeats(c)]
    if not repeated or any(len(c) >= RECORDS and not constant(c.values) for c in scores):
        return
    c = max(repeated, key=lambda c: (len(c), c.series.group == "train"))
    beside = _loss_beside(run, c)
    if beside is not None:
        yield _finding(run, c, beside)


def _repeats(c: Curve) -> bool:
    if len(c) < RECORDS or len(c) < len(c.series) or not constant(c.values):
        return False
    return 0.0 < float(fraction(c.values)[0]) < 1.0


def _loss_beside(run: Run, c: Curve) -> Curve | None:
    """A loss that moves, but by little: the one of the same group first, else the training loss."""
    candidates = [main_loss(run, c.series.group), main_loss(run)]
    losses = [curve(s) for s in candidates if s is not None]
    for loss in losses:
        if len(loss) >= RECORDS and (constant(loss.values) or abs(drop(loss.values)) > _allowed(loss)):
            return None
    return next((x for x in losses if len(x) >= RECORDS), None)


def _allowed(loss: Curve) -> float:
    """The fall that still counts as little: more where the scatter of batches hides that much."""
    level = abs(float(loss.values[0])) or 1.0
    return FALL + min(0.05, 2.0 * ratio(noise(loss.values), level * len(loss) ** 0.5))


def _finding(run: Run, c: Curve, loss: Curve) -> Finding:
    z, fall = trend(loss.values), drop(loss.values)
    pace = "crawl" if abs(z) >= STEADY and spread(loss.values) > 0 and abs(fall) > 0 else "still"
    start, end = c.where(0, len(c) - 1)
    value = float(c.values[0])
    moved = (f"moves steadily, by only {percent(abs(fall))}" if pace == "crawl" else
             f"scatters around {number(float(loss.values.mean()))} without a trend")
    classes = next((k.count for k in class_counts(run)), None)
    return RULE.finding(
        f"{c.series} is {number(value)} to the last digit in all {len(c)} records {span(c.series, start, end)}, while "
        f"{loss.series} {moved}: no answer changes", c.series.at(start, end), c.series.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured={"metric": c.series.name, "group": c.series.group, "value": value, "records": len(c), "pace": pace,
                  "loss_fall": fall, "loss_trend": z, "loss": float(loss.values[-1]), "classes": classes})
