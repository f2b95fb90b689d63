"""A score or a reward that falls steadily to the end of the run.

Accuracy, F1, IoU, a mean reward: what should rise goes down, stretch by stretch, for half of the run and more. Each
step of it may hide in the scatter; the trend over the stretches does not (`steady_rise`, turned round). A training
score that falls while the held-out one of the same kind rises is the course of harder augmentation, and is left alone,
as is a reward that stands for a cost and rises by being less negative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import Rise, main_loss
from traindx_tools.on_logs.curves.shapes import Track, median_words, number, tail_level, track
from traindx_tools.on_logs.curves.steady_rise import CLEAR, OF_LEVEL, RISING, steady_rise
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

SCORES = ("accuracy", "accuracy_top5", "f1", "auc", "iou", "map", "dice", "r2", "recall", "precision", "bleu", "reward")
"""Canonical names of what should rise, of which the first that falls is told."""
WORDS = frozenset({*SCORES, "acc", "ap", "ar", "miou", "auroc"}) - {"reward", "precision"}
"""Words by which a name says that it is the score of a part: `bbox_mAP_50`, `fg_dice`."""

RULE = Rule(
    id="L224",
    name="score-falls",
    title="A score falls steadily",
    severity=Severity.MEDIUM,
    sees="the medians of stretches of a score or a reward, from the best one to the end",
    matters="The run gets worse at what it is for, whatever its loss does; its last checkpoint is not its best.",
    alike=("Over-fitting: L203 tells it of held-out data beside a training loss that falls.",
           "A curriculum: tasks that get harder lower a score by steps.",
           "Stronger augmentation: the training score falls and the held-out one rises."),
    confirm=("Evaluate the checkpoint of the best stretch and the last one on the same data.",
             "Compute the score by hand on ten samples: what falls may be its computation."),
    thresholds={
        "steady": Threshold(RISING, "of the pairs of stretches, falling less rising", "by chance one series in 3,000"),
        "noise": Threshold(CLEAR, "times the scatter between stretches", "a level that wanders rarely has more"),
        "level": Threshold(OF_LEVEL, "of the best level", "less is a plateau that drifts"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    for name in SCORES:
        for group in ("validation", "test", "train"):
            series = run.first(name, group=group)
            t = track(series)
            fall = _fall(t)
            if t is not None and fall is not None and not (group == "train" and _held_out_rises(run, t.series)):
                yield _finding(run, t, fall)
                return
    for group in ("validation", "test"):
        if not any(run.first(name, group=group) for name in SCORES):
            yield from _of_parts(run, group)


def _of_parts(run: Run, group: str) -> Iterator[Finding]:
    """The first of several scores of parts, where most of those that move fall."""
    parts = [s for s in run.series if s.group == group and WORDS.intersection(re.split(r"[_/]", s.name))]
    moving = [t for s in parts if (t := track(s)) is not None and bool(np.ptp(t.y) > 0)]
    falling = [(t, fall) for t in moving if (fall := _fall(t)) is not None]
    if 2 * len(falling) > len(moving):
        yield _finding(run, *falling[0])


def _fall(t: Track | None) -> Rise | None:
    """A fall to the end; a record of held-out data is a mean over a set already, and stands for itself."""
    if t is None or not bool(t.series.finite[-1]):
        return None
    return steady_rise(_turned(t)) or (steady_rise(_turned(t), 1) if t.series.group != "train" else None)


def _turned(t: Track) -> Track:
    return replace(t, y=-t.y)


def _held_out_rises(run: Run, series: Series) -> bool:
    """Whether the same score of held-out data ends above the level of its first half."""
    held = [track(run.first(series.name, group=g)) for g in ("validation", "test")]
    return any(h is not None and len(h) >= 4 and tail_level(h.y) > float(np.median(h.y[: len(h) // 2])) for h in held)


def _finding(run: Run, t: Track, fall: Rise) -> Finding:
    part = max(1, (len(t) - fall.best_at) // 12)
    first, last = (float(np.median(v)) for v in (t.y[fall.best_at: fall.best_at + part], t.y[-part:]))
    before = median_words(t.series, int(t.index[fall.best_at]), int(t.index[fall.best_at + part - 1]))
    after = median_words(t.series, int(t.index[-part]), int(t.index[-1]))
    loss = track(main_loss(run))
    falls = loss is not None and len(loss) >= 4 and tail_level(loss.y) < float(np.median(loss.y[: len(loss) // 2]))
    beside = f", while {loss.series} falls as well" if loss is not None and falls else ""
    return RULE.finding(
        f"{t.series} falls steadily, from {number(first)} ({before}) to {number(last)} ({after}){beside}",
        t.at(fall.best_at, -1), t.series.source, bearing=Bearing.SIGN,
        measured={"metric": t.series.name, "group": t.series.group, "best": first, "end": last, "loss_falls": falls,
                  "onset": float(t.series.position[t.index[fall.best_at]])})
