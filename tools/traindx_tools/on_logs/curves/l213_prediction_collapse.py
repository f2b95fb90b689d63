"""The predictions are the same whatever the input.

"std": the standard deviation of the predictions is under a tenth of that of the target (known from the logged variance
or from a squared error beside R2), or, where the target is unknown, under 0.001, or fell to a fiftieth of what it
was. The model says the mean. Broadcasting (N, 1) against (N,) in the loss does it, so do dead units, inputs on a wild
scale, or a collapsed representation.

"unique": a count of distinct outputs stands at one.

"same-class": held-out accuracy is equal to the last digit at five evaluations or more, below 90 %, while losses move:
the model names one class for every sample, and the accuracy is that class's frequency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, constant, curve, ending, head, last_part, ratio, tail
from traindx_tools.on_logs.curves.constants import key_with_underscores, target_variance
from traindx_tools.on_logs.curves.learning import accuracy, is_reinforcement, main_loss, number, percent, span
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

SHARE = 0.1
ABSOLUTE = 1e-3
FALLEN = 0.02
CLASS_RECORDS = 5
CLASS_ACCURACY = 0.9
MAJORITY = 0.8
RECALL_SLACK = 0.02

RULE = Rule(
    id="L213",
    name="prediction-collapse",
    title="The predictions are the same for every input",
    severity=Severity.HIGH,
    sees="the spread of predictions or representations, counts of distinct outputs, accuracies that never change",
    matters="The output carries nothing of the input; the loss only measures how good a constant is.",
    alike=(
        "A small spread at the first records, before anything is learned.",
        "A held-out set of a few samples: accuracy has few possible values and may repeat.",
        "Normalised representations of width d have a spread of 1/sqrt(d), which is small and healthy.",
    ),
    confirm=(
        "Print the predictions for five different inputs.",
        "Print prediction.shape and target.shape in the loss; they must be equal.",
    ),
    thresholds={
        "share": Threshold(SHARE, "of the target's standard deviation", "then R2 cannot exceed 0.2 (arithmetic)"),
        "absolute": Threshold(ABSOLUTE, "units of the prediction", "where the target is unknown; 1/sqrt(d) is "
                                                                   "0.022 at 2048"),
        "fallen": Threshold(FALLEN, "of its highest level", "a collapse on the way"),
        "majority": Threshold(MAJORITY, "fraction", "accuracy without a single hit: four fifths are of one class"),
        "recall_slack": Threshold(RECALL_SLACK, "fraction", "accuracy above the highest recall: rounding"),
        "class_records": Threshold(CLASS_RECORDS, "evaluations", "equal to the last digit"),
    },
)

_SPREAD = re.compile(
    r"(?:^|_)(?:pred\w*|output\w*|logit\w*|feat\w*|embed\w*|repr\w*|z|latent\w*)_(?:std|stddev|spread)$")
_DISTINCT = re.compile(r"(?:unique|distinct)_(?:outputs?|pred\w*|class\w*|tokens?|answers?|generations?|samples?)$")

_HITS = re.compile(r"(?:^|_)(?:recall|sensitivity|tpr|tp|f1|hit_rate|flagged|alerts?|detections?|positives?_predicted|"
                   r"(?:pred(?:icted)?|n_pred)_pos(?:itives?)?|predicted_positive_rate|pos_pred)(?:_|$)")
"""What counts how often the rare class was named."""


_SCORES = frozenset({"recall", "sensitivity", "tpr", "f1"})
FEW = 0.1
"""A mean over classes that is twice this cannot be that of a model that names one of ten."""


def name_of(series: Series) -> str:
    """A metric's own name in lower snake case."""
    return key_with_underscores(series.original)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding of each kind."""
    for series in run.series:
        if len(series) < 3:
            continue
        name = name_of(series)
        if series.name == "prediction_std" or _SPREAD.search(name):
            finding = _narrow(run, curve(series))
        elif _DISTINCT.search(name):
            finding = _single(curve(series))
        else:
            continue
        if finding is not None:
            yield finding
            break
    yield from _never_positive(run) or _same_class(run)


def _narrow(run: Run, c: Curve) -> Finding | None:
    explained = run.first("r2")
    if len(c) < 3 or c.values.min() < 0.0 or (explained is not None and tail(curve(explained).values) > 0.3):
        return None
    level = max(tail(c.values), float(last_part(c.values, 0.5).mean()))
    target = _target_std(run)
    if target is not None and target > 0:
        share, collapsed = ratio(level, target), level < SHARE * target
        against = f", {percent(share)} of the target's {number(target)}"
    else:
        highest = float(c.values.max())
        collapsed = level < ABSOLUTE or (level < FALLEN * highest and head(c.values) > 5 * level)
        against = f" (it was {number(highest)})" if highest > 2 * level else ""
        share = None
    return _finding(c, "std", f"standard deviation of the predictions is {number(level)}{against}",
                    {"level": level, "target_std": target, "share": share}) if collapsed else None


def _target_std(run: Run) -> float | None:
    loss = main_loss(run) or run.first("mse")
    match = target_variance(run, curve(loss)) if loss is not None else None
    if match is None or match.expected <= 0:
        return None
    return match.expected if loss is not None and loss.name == "rmse" else float(match.expected**0.5)


def _single(c: Curve) -> Finding | None:
    last = last_part(c.values, 0.5)
    if len(c) < 3 or last.max() > 1.0 or last.min() < 0.0:
        return None
    return _finding(c, "unique", f"{c.series.original} is {number(float(last.max()))}", {"level": float(last.max())})


def _never_positive(run: Run) -> list[Finding]:
    """A high accuracy beside a count of hits that is exactly 0, of the same samples: the rare class is not named."""
    for s in run.series:
        c = curve(s)
        if len(c) < 3 or len(c) < len(s) or not _HITS.search(name_of(s)):
            continue
        last = last_part(c.values, 0.35)
        acc = accuracy(run, *([s.group] if s.group in ("validation", "test") else ["validation", "test", "train"]))
        if acc is None or len(acc) < 3 or tail(acc.values) < MAJORITY or _of_other_samples(run, acc, name_of(s)):
            continue
        if not last.any():
            others = _others_named(run, s)
            if others is not None:  # one class of several: the output says something of the input
                return [replace(_finding(c, "never-positive", f"{c.series.original} is 0 in the last {len(last)} "
                                         f"records, while {others.original} is {ending(curve(others))}: one class of "
                                         "several is never predicted", {"level": 0.0, "records": len(last)}),
                                severity=Severity.LOW)]
            return [_finding(c, "never-positive", f"{c.series.original} is 0 in the last {len(last)} records while "
                             f"{acc.series} is {ending(acc)}: the rare class is never predicted",
                             {"level": 0.0, "accuracy": tail(acc.values), "records": len(last)})]
    return []


def _of_other_samples(run: Run, acc: Curve, hits: str) -> bool:
    """Whether the accuracy cannot be that of the samples whose hits are counted.

    It is written as the training's and they are not, or it lies above every class's recall: accuracy is their mean,
    weighted by the classes' frequencies.
    """
    if "train" in name_of(acc.series) and "train" not in hits:
        return True
    recalls = [tail(curve(s).values) for s in run.series if "recall" in name_of(s) and len(s) >= 3]
    return len(recalls) > 1 and max(recalls) < tail(acc.values) - RECALL_SLACK


def _same_class(run: Run) -> Iterator[Finding]:
    acc = accuracy(run, "validation", "test")
    if acc is None or len(acc) < CLASS_RECORDS or not constant(acc.values) or is_reinforcement(run):
        return
    level = float(acc.values[0])
    train = accuracy(run, "train")
    precise = len(f"{level:.6f}".strip("0").replace(".", "")) >= 3
    if not 0.0 < level < CLASS_ACCURACY or not precise or not _losses_move(run):
        return
    if train is not None and tail(train.values) >= CLASS_ACCURACY:
        return
    yield _finding(acc, "same-class", f"{acc.series} is {number(level)} to the last digit at all {len(acc)} "
                                      f"evaluations "
                                      "while the loss moves, as if one class were named for every sample",
                   {"level": level, "records": len(acc)}, Severity.MEDIUM, Bearing.COMPANION)


def _losses_move(run: Run) -> bool:
    moving: list[Series] = [s for s in run.series if "loss" in s.name and len(s) >= 3]
    return any(not constant(curve(s).values) for s in moving)


def _others_named(run: Run, one: Series) -> Series | None:
    """The same score of all classes together, where that shows that the others are named."""
    mine = set(name_of(one).split("_"))
    return next((s for s in run.series if s is not one and s.group == one.group and len(s) >= 3
                 and {"macro", "weighted", "micro", "mean", "avg"} & (theirs := set(name_of(s).split("_")))
                 and mine & theirs & _SCORES and tail(curve(s).values) > 2 * FEW), None)


def _finding(c: Curve, kind: str, words: str, measured: dict[str, float | None], severity: Severity = Severity.HIGH,
             bearing: Bearing = Bearing.SIGN) -> Finding:
    start, end = c.where(0, len(c) - 1)
    return RULE.finding(f"{words}, {span(c.series, start, end)}", c.series.at(start, end), c.series.source,
                        bearing=bearing, severity=severity, measured={"kind": kind, **measured})
