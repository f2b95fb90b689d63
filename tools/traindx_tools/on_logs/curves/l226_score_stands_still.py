"""A held-out score is the same to the last digit at every evaluation while the training loss falls: a remark.

What is trained changes, for the loss falls; no answer on the held-out samples does, or the score does not see it. An
evaluation of other weights, of one cached batch or with the labels of another order does that; so does a model that
names one class early in training, and a held-out set of a few samples. A log cannot tell these apart. Where the
evaluation's own loss repeats too (L215), nothing is learned (L216) or one class is named throughout (L213), those
report.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves import l213_prediction_collapse, l215_metric_unchanged, l216_metric_exactly_constant
from traindx_tools.on_logs.curves.baselines import Curve, beginning, constant, curve, drop, ending, fraction, trend
from traindx_tools.on_logs.curves.l216_metric_exactly_constant import SCORES, STEADY
from traindx_tools.on_logs.curves.learning import is_adversarial, is_reinforcement, main_loss, number, percent, span
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

RECORDS, FEW_VALUES, COARSE_RECORDS, FALL = 6, 50, 12, 0.1

RULE = Rule(
    id="L226",
    name="score-stands-still",
    title="A held-out score never changes by a digit while the training loss falls",
    severity=Severity.LOW,
    sees="held-out accuracies, recalls and other scores over the whole log, with the training loss beside them",
    matters="The evaluation does not see what training changes, or no answer changes yet.",
    alike=("A model that names one class, early in training on unbalanced classes.",
           "A held-out set of a few samples, whose score has few possible values.",
           "A score at its best: that is left alone."),
    confirm=("Print the predictions for ten held-out samples at two evaluations, and how often each class is named.",
             "Print a hash of the evaluated parameters at each evaluation: equal hashes are another model than the one "
             "that trains."),
    thresholds={
        "records": Threshold(RECORDS, "evaluations", "equal to the last digit"),
        "coarse_records": Threshold(COARSE_RECORDS, "evaluations", f"where the score is a share of {FEW_VALUES} samples"
                                                                   " or fewer, or of classes: it repeats by chance"),
        "fall": Threshold(FALL, "relative fall of the training loss", "more than that is learning"),
        "steady": Threshold(STEADY, "Mann-Kendall z", "a loss that goes one way, not one that scatters"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one remark: the score with most evaluations."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    scores = [curve(s) for s in run.series if SCORES.match(s.name) and s.group != "train" and s.rank in (None, 0)]
    still = [c for c in scores if _stands(c)]
    loss = main_loss(run)
    if not still or loss is None or not _falls(curve(loss)) or _told_elsewhere(run):
        return
    yield _finding(max(still, key=len), curve(loss), _beside(run))


def _stands(c: Curve) -> bool:
    """Whether all evaluations gave one number that is not the best there is, more often than a few samples make it."""
    if len(c) < RECORDS or len(c) < len(c.series) or not constant(c.values):
        return False
    share = float(fraction(c.values)[0])
    return 0.0 <= share < 1.0 and len(c) >= (COARSE_RECORDS if _is_coarse(share) else RECORDS)


def _is_coarse(share: float) -> bool:
    """Whether a share is that of so few samples, or that of chance: k / n for a small n, to four decimals."""
    return any(abs(share * n - round(share * n)) < 5e-5 * n for n in range(1, FEW_VALUES + 1)
               if round(round(share * n) / n, 4) == round(share, 4))


def _falls(loss: Curve) -> bool:
    return len(loss) >= RECORDS and drop(loss.values) > FALL and trend(loss.values) <= -STEADY


def _told_elsewhere(run: Run) -> bool:
    rules = (l213_prediction_collapse, l215_metric_unchanged, l216_metric_exactly_constant)
    return any(True for rule in rules for _ in rule.check(run))


def _beside(run: Run) -> str:
    """What else of the evaluations moves: another "score", their "loss", or "nothing"."""
    moving = [s for s in run.series if s.group != "train" and len(s) >= RECORDS and not constant(curve(s).values)]
    scores = any(SCORES.match(s.name) for s in moving)
    return "score" if scores else "loss" if any("loss" in s.name for s in moving) else "nothing"


_MEANS = {
    "score": "other held-out scores move, so this one does not see what changes",
    "loss": "the held-out loss moves, so the evaluated weights do change, and none of their answers does",
    "nothing": "no held-out answer changes, or other weights are evaluated than those that train",
}


def _finding(c: Curve, loss: Curve, beside: str) -> Finding:
    start, end = c.where(0, len(c) - 1)
    value, fall = float(c.values[0]), drop(loss.values)
    return RULE.finding(
        f"{c.series} is {number(value)} to the last digit at all {len(c)} evaluations {span(c.series, start, end)}, "
        f"while the training {loss.series} falls by {percent(fall)}, from {beginning(loss)} to {ending(loss)}: "
        f"{_MEANS[beside]}", c.series.at(start, end), c.series.source, bearing=Bearing.COMPANION,
        measured={"metric": c.series.name, "group": c.series.group, "value": value, "records": len(c),
                  "loss_fall": fall, "loss": float(loss.values[-1]), "beside": beside})
