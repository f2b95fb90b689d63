"""Validation loss has turned and climbs while training loss goes on falling.

From the turn on, what the model learns holds for the training set alone. The epoch of the minimum is the model worth
keeping. The rule smooths the validation loss (running median of three), takes its minimum, and compares with the end:
the rise must be 5 % at least, larger than the scatter between evaluations, and the training loss must have fallen in
the same stretch; a training loss that rises along means divergence, not over-fitting.

An accuracy of held-out data that never rose above its first value and stays at or below a coin's (0.55), while training
loss ends far below where it began, is told beside it ("carries_over" is false): such a model learned nothing that
holds outside the training set, which wrong labels, a split that does not match or a mistake of the evaluation explain
as well.

A rise of the loss is not always harm: an accuracy that still improves says that the model only becomes too sure of its
errors. The severity is lower then, and a rise of a few per cent while nearly every answer is right is a remark (INFO).
A validation loss that was far above the training loss at the first evaluation and never came down is another fault
(L204, L208): there the model never generalised.

Where no validation loss is logged, an accuracy that peaks and declines by 3 points while training loss falls counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median, noise, ratio, smooth, tail, trend
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    aligned,
    held_out_loss,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    percent,
    place,
)
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

RISE = 0.05
CLEAR_RISE = 0.10
LARGE_RISE = 0.50
TRAIN_FALL = 0.03
SIGMAS = 4.0
FIRST_RATIO = 3.0
NEVER_FELL_GROWTH = 5.0
DECLINE = 0.03
COIN = 0.55
FULL = 0.95

RULE = Rule(
    id="L203",
    name="overfitting",
    title="Validation loss turned and climbs while training loss falls",
    severity=Severity.MEDIUM,
    sees="validation loss (or accuracy) beside training loss, evaluation by evaluation",
    matters="Everything after the minimum is memorised; the last checkpoint is worse than an earlier one.",
    alike=(
        "Validation loss that rises from the first evaluation by orders of magnitude: a difference between "
        "training and "
        "evaluation mode.",
        "Both losses rise: divergence.",
        "Validation loss floored while accuracy is perfect: a wrong loss in validation.",
    ),
    confirm=(
        "Evaluate the checkpoint of the minimum and the last one on the same held-out data.",
        "Evaluate in evaluation mode on the training set: a low loss there rules out a difference of modes.",
    ),
    thresholds={
        "rise": Threshold(RISE, "relative to the minimum", "gap < 5 % is healthy: ml-training-debugger skill"),
        "clear_rise": Threshold(CLEAR_RISE, "relative to the minimum", "ratio 0.1: sagemaker-debugger"),
        "large_rise": Threshold(LARGE_RISE, "relative to the minimum", "five times the clear rise"),
        "sigmas": Threshold(SIGMAS, "standard deviations", "a minimum over noise lies about 2 below its level"),
        "train_fall": Threshold(TRAIN_FALL, "relative", "training loss goes on falling after the minimum"),
        "first_ratio": Threshold(FIRST_RATIO, "validation / training", "beyond it the gap was there from the start"),
        "decline": Threshold(DECLINE, "fraction", "of accuracy below its best"),
        "full": Threshold(FULL, "fraction", "accuracy at which a rise below clear_rise is a handful of answers"),
        "coin": Threshold(COIN, "fraction", "accuracy of a coin (two balanced classes) and a tenth more"),
    },
)


@dataclass(frozen=True, eq=False)
class _Turn:
    """The validation curve with training beside it. `lowest`: number of the record of the minimum."""

    held_out: Curve
    train: Floats
    lowest: int
    minimum: float
    end: float

    @property
    def growth(self) -> float:
        return ratio(self.end, self.minimum)

    @property
    def fell_first(self) -> bool:
        return float(self.held_out.values[0]) > 1.01 * self.minimum

    @property
    def first_ratio(self) -> float:
        return ratio(float(self.held_out.values[0]), float(self.train[0]))


def check(run: Run) -> Iterator[Finding]:
    """A finding where the held-out loss turned, else where the held-out accuracy declined."""
    train, held_out = main_loss(run), held_out_loss(run)
    if train is None or is_reinforcement(run) or is_adversarial(run):
        return
    if held_out is None:
        yield from _accuracy_declined(run, curve(train))
        return
    turn = _turn(curve(train), curve(held_out))
    if turn is not None:
        finding = _finding(run, turn)
        if finding is not None:
            yield finding


def _turn(train: Curve, held_out: Curve) -> _Turn | None:
    v = held_out.values
    if len(v) < 4 or len(train) < 2 or v.min() <= 0.0:
        return None
    smoothed = smooth(v) if len(v) >= 9 else v
    lowest = _raw_minimum(v, int(np.argmin(smoothed)))
    beside = aligned(train, held_out)
    end = median(v[len(v) - max(1, min(3, (len(v) - 1 - lowest) // 2)):])
    turn = _Turn(held_out, beside, lowest, float(v[lowest]), end)
    after = v[lowest:]
    scatter = noise(v)
    climbs = end - turn.minimum > SIGMAS * scatter and (trend(after) > 1.5 or len(after) < 5)
    if lowest > len(v) - 3 or turn.growth < 1.0 + RISE or not climbs:
        return None
    train_fell = _train_fall(turn) >= TRAIN_FALL or (beside[lowest:] <= 0.05).all()
    from_start = turn.lowest <= 1 and not turn.fell_first and (
        turn.first_ratio >= FIRST_RATIO or turn.growth >= NEVER_FELL_GROWTH)
    return turn if train_fell and not from_start else None


def _raw_minimum(values: Floats, near: int) -> int:
    """The lowest record among the three around the minimum of the smoothed curve."""
    first = max(0, near - 1)
    return first + int(np.argmin(values[first:near + 2]))


def _train_fall(turn: _Turn) -> float:
    before, last = float(turn.train[turn.lowest]), float(median(last_part(turn.train, 0.2)))
    return ratio(before - last, abs(before))


def _finding(run: Run, turn: _Turn) -> Finding | None:
    h = turn.held_out
    group = h.series.group
    acc = accuracy(run, group, *(g for g in ("validation", "test") if g != group))
    beside = aligned(acc, h) if acc is not None else None
    at_minimum = float(beside[turn.lowest]) if beside is not None else None
    at_end = median(last_part(beside, 0.1)) if beside is not None else None
    course = "unknown" if at_minimum is None or at_end is None else (
        "improves" if at_end > at_minimum + 0.003 else "falls" if at_end < at_minimum - 0.01 else "stays")
    severity = _severity(turn, course, at_end)
    train_accuracy = accuracy(run, "train")
    lowest, last = h.where(turn.lowest, len(h) - 1)
    words = {"unknown": "", "improves": f"; {group} accuracy {_course_of(h, beside, turn.lowest)}",
             "falls": f"; {group} accuracy falls from {_pair(at_minimum, at_end)}",
             "stays": f"; {group} accuracy stays at {number(at_end or 0.0)}"}[course]
    if acc is not None and not _carries_over(acc):
        words += f" and never was better than at first ({number(float(acc.values[0]))})"
    return RULE.finding(
        f"{group} loss reaches its minimum {number(turn.minimum)} {place(h.series, lowest)} and rises to "
        f"{number(float(h.values[-1]))} {place(h.series, last)}, {percent(float(h.values[-1]) / turn.minimum - 1.0)} "
        f"more, while training loss "
        f"falls from "
        f"{number(float(turn.train[turn.lowest]))} to {number(float(turn.train[-1]))}{words}",
        h.series.at(lowest, last), h.series.source, bearing=Bearing.SIGN, severity=severity,
        measured={"kind": "loss", "val_min": turn.minimum, "val_min_at": float(h.series.position[lowest]),
                  "unit": h.series.unit, "val_first": float(h.values[0]), "val_end": turn.end, "growth": turn.growth,
                  "fell_first": turn.fell_first, "train_at_min": float(turn.train[turn.lowest]),
                  "train_end": float(turn.train[-1]), "ratio_first": turn.first_ratio,
                  "ratio_end": ratio(turn.end, float(turn.train[-1])), "val_accuracy_at_min": at_minimum,
                  "val_accuracy_end": at_end, "val_accuracy_course": course,
                  "carries_over": None if acc is None else _carries_over(acc),
                  "train_accuracy_end": tail(train_accuracy.values) if train_accuracy is not None else None},
    )


def _carries_over(acc: Curve) -> bool:
    """Whether the held-out accuracy ever rose above its first value, or lies above a coin's."""
    best = float(acc.values.max())
    return best > COIN or best - float(acc.values[0]) > DECLINE


def _course_of(h: Curve, beside: Floats | None, lowest: int) -> str:
    """How the accuracy goes from the minimum of the loss to the end, in values of the log, with its own turn."""
    if beside is None:
        return ""
    then, end = float(beside[lowest]), float(beside[-1])
    best = lowest + int(np.argmax(beside[lowest:]))
    if best == len(beside) - 1:
        return f"still goes from {number(then)} to {number(end)}"
    return (f"goes from {number(then)} to {number(end)} at the end, after its highest {number(float(beside[best]))} "
            f"{place(h.series, h.where(best, best)[0])}")


def _pair(a: float | None, b: float | None) -> str:
    return f"{number(a or 0.0)} to {number(b or 0.0)}"


def _severity(turn: _Turn, course: str, accuracy_end: float | None) -> Severity:
    rise = turn.growth - 1.0
    nearly_all_right = (accuracy_end or 0.0) >= FULL
    if nearly_all_right and course in ("improves", "stays") and turn.end - turn.minimum < 0.1:
        return Severity.INFO
    if nearly_all_right and rise < CLEAR_RISE:
        return Severity.INFO  # a few answers of many, surer of what is wrong: no reason to stop
    if rise < CLEAR_RISE or (course == "improves" and rise < 2 * CLEAR_RISE):
        return Severity.LOW
    return Severity.HIGH if rise >= LARGE_RISE and course != "improves" else Severity.MEDIUM


def _accuracy_declined(run: Run, train: Curve) -> Iterator[Finding]:
    acc = accuracy(run, "validation", "test")
    if acc is None or len(acc) < 6 or len(train) < 4:
        return
    smoothed = smooth(acc.values)
    best = int(np.argmax(smoothed))
    end = tail(acc.values)
    beside = aligned(train, acc)
    decline = float(smoothed[best]) - end
    falls = ratio(float(beside[best] - beside[-1]), abs(float(beside[best]))) >= TRAIN_FALL
    if best > len(acc) - 4 or decline < DECLINE or decline < SIGMAS * noise(acc.values) or not falls:
        return
    at_best, last = acc.where(best, len(acc) - 1)
    group = acc.series.group
    yield RULE.finding(
        f"{group} accuracy peaks at {number(float(smoothed[best]))} {place(acc.series, at_best)} and declines to "
        f"{number(end)} {place(acc.series, last)}, while training loss falls from {number(float(beside[best]))} to "
        f"{number(float(beside[-1]))}",
        acc.series.at(at_best, last), acc.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if decline >= 2 * DECLINE else Severity.LOW,
        measured={"kind": "accuracy", "val_accuracy_best": float(smoothed[best]), "val_accuracy_end": end,
                  "val_best_at": float(acc.series.position[at_best]), "decline": decline,
                  "train_end": float(beside[-1])},
    )
