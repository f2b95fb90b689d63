"""What is tested at the end is not what was trained: the test has the values that validation had at an early epoch.

The weights that are tested are those of a checkpoint, and of the wrong one: the first, the worst by its metric, or none
that was loaded at all. All metrics that validation and test share say the same record, far from the last and the best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.learning import is_reinforcement, number
from traindx_tools.on_logs.run import Floats, Ints, Run, Series
from traindx_tools.rules import Rule, Threshold

_FALLS = re.compile(r"loss|perplexity|error|nll|chamfer|\b(?:wer|cer|mse|mae|rmse)\b")
_RISES = re.compile(r"accuracy|recall|precision|\b(?:acc|f1|auc|auprc|iou|dice|map\w*|r2|bleu|rouge\w*|score)\b")
NEAR, FAR, ENOUGH, SHARED = 0.1, 0.3, 5, 2

RULE = Rule(
    id="L230",
    name="test-of-early-weights",
    title="The test shows an early epoch, not the trained weights",
    severity=Severity.MEDIUM,
    sees="the last test record beside every validation record, by all metrics that both have",
    matters="The reported score is that of a checkpoint that should have been thrown away.",
    alike=("A test set of another origin: its metrics do not all fall on one epoch.",
           "A run that got worse towards its end, and is tested as it was at its best."),
    confirm=("Compare the epoch of the file that was loaded with the best epoch in the log.",
             "Test the last weights as well."),
    thresholds={
        "near": Threshold(NEAR, "of a metric's way from its worst to its best", "between the test and that epoch"),
        "far": Threshold(FAR, "of the same way", "between the test and the best epoch, at least"),
        "enough": Threshold(ENOUGH, "records", "of validation"),
        "shared": Threshold(SHARED, "metrics", "that validation and test both have"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    pairs = [] if is_reinforcement(run) else list(_pairs(run))
    ways = [_way(held_out, float(test.values[-1])) for held_out, test in pairs]
    if len(ways) < SHARED or len({len(w) for w in ways}) != 1:
        return
    apart = np.max(ways, axis=0)
    at, held_out = int(np.argmin(apart)), pairs[0][0]
    best = [int(np.argmax(_better(held.name) * held.values)) for held, _ in pairs]
    if apart[at] > NEAR or any(w[b] < FAR for w, b in zip(ways, best, strict=True)) or at >= min(best):
        return
    test = pairs[0][1]
    said = ", ".join(f"{t.name} {number(float(t.values[-1]))} ({number(float(h.values[at]))} there, "
                     f"{number(float(h.values[b]))} at the best)" for (h, t), b in zip(pairs, best, strict=True))
    yield RULE.finding(
        f"the test has the values that validation had at {held_out.unit} {held_out.position[at]:g} of "
        f"{held_out.position[-1]:g}: {said}",
        test.at(len(test) - 1), test.source, bearing=Bearing.SIGN,
        measured={"at": float(held_out.position[at]), "last": float(held_out.position[-1]), "unit": held_out.unit,
                  "first": at == 0, "apart": float(apart[at]), "metrics": len(ways)})


def _pairs(run: Run) -> Iterator[tuple[Series, Series]]:
    """Validation and test of each metric whose better end is known, without what is written once more at the end."""
    for held_out in (s for s in run.series if s.group == "validation" and len(s) >= ENOUGH and _better(s.name)):
        test = next(run.find(held_out.name, group="test"), None)
        kept = _of(held_out, _onwards(held_out))
        if test is None or len(kept) < ENOUGH or not kept.finite.all() or not np.isfinite(test.values[-1]):
            continue
        if float(np.ptp(kept.values)) > 1e-9 * abs(float(kept.values[0])):
            yield kept, test


def _onwards(series: Series) -> Ints:
    """The records that lie behind all before them: a line that names the epoch that was kept is no record."""
    counted = series.epoch if np.isfinite(series.epoch).any() else series.step
    counted = np.where(np.isfinite(counted), counted, -np.inf) if np.isfinite(counted).any() else series.position
    before = np.concatenate([[-np.inf], np.maximum.accumulate(counted)[:-1]])
    return np.flatnonzero(counted > before)


def _of(series: Series, index: Ints) -> Series:
    return replace(series, values=series.values[index], step=series.step[index], epoch=series.epoch[index],
                   time=series.time[index], line=series.line[index])


def _way(held_out: Series, test: float) -> Floats:
    """How far each record is from the test, as a share of the way that the metric went."""
    return np.asarray(np.abs(held_out.values - test) / np.ptp(held_out.values))


def _better(name: str) -> int:
    """1 where larger is better, -1 where smaller is, 0 where its name does not say."""
    falls, rises = _FALLS.search(name) is not None, _RISES.search(name) is not None
    return int(rises) - int(falls)
