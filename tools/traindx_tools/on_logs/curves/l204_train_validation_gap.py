"""Validation is far from training from the very first evaluation, or runs away from it, while training is fine.

Over-fitting takes time: validation improves first and turns later (L203). Here it never improved. Either the loss on
held-out data starts several times above the training loss and stays there, or it grows by factors from evaluation to
evaluation while training falls, or it jumps up and down by orders of magnitude beside a smooth training curve. The
model in evaluation mode is then not the model that trains: running statistics of a normalisation layer that lag
behind the batches, another preprocessing, another input scale, a mask that is missing. A model that is validated on
its own training batch and still shows this leaves no other reading.

`measured.kind`: "growing" (5 times or more above the first evaluation, never having fallen), "from-start" (3 times
the training loss or more at the first two evaluations, and no improvement since; or ten times at every evaluation, in
the same metric, with less than half of the improvement that training shows), "erratic" (factors of 10 between
evaluations), "accuracy" (no loss is logged; held-out accuracy lies 30 points below from the start on).
A held-out loss that never exceeds half of the training loss is no gap of this kind: mixed inputs, smoothed labels and
dropout make the training loss the harder one, and it may rise from a very small value as the model grows less sure.
A held-out accuracy of 90 % or more says that the evaluated model is sound, and the rule stays silent.
A first evaluation below half of the loss that training began with is that of a model that has learned: it came late,
when the gap of a small training set had opened already, and three times the training loss is then no "from-start".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, ending, median, noise, ratio, tail, trend
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
    span,
)
from traindx_tools.on_logs.curves.shapes import printed_unit
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

GROWTH = 5.0
RATIO = 3.0
IMPROVED = 0.9
FAR, FAR_IMPROVED = 10.0, 0.5
SWING = 10.0
MEMORISED = 30.0
ACCURACY_GAP = 0.3
SOUND_ACCURACY = 0.9
BELOW = 0.5
LEARNED = 0.5

RULE = Rule(
    id="L204",
    name="train-validation-gap",
    title="Validation is far from training from the start",
    severity=Severity.HIGH,
    sees="held-out loss and accuracy beside those of training, evaluation by evaluation",
    matters="The evaluated model is not the one that trains: no validation number of this run can be trusted.",
    alike=(
        "Over-fitting: validation improves first and turns later.",
        "A held-out set of another distribution: a constant gap, accuracy above chance.",
        "The first evaluation came late, when the model was over-fitted already.",
    ),
    confirm=(
        "Evaluate the training batch itself in evaluation mode and in training mode: equal losses rule this out.",
        "Print running_mean and running_var of the first normalisation layer beside the batch's mean and variance.",
    ),
    thresholds={
        "growth": Threshold(GROWTH, "last / first evaluation", "over-fitting seldom multiplies a loss by 5 at once"),
        "ratio": Threshold(RATIO, "validation / training", "at the first evaluations; a usual gap is below 2"),
        "improved": Threshold(IMPROVED, "of the first evaluation", "a loss below it has improved"),
        "far": Threshold(FAR, "validation / training", "at every evaluation, in the same metric: no "
                                                       "generalisation gap of a young run is so wide"),
        "far_improved": Threshold(FAR_IMPROVED, "of the first evaluation", "a loss that halves is learning; one in "
                                                                           "other units falls as training's does"),
        "memorised": Threshold(MEMORISED, "validation / training", "a small loss without an accuracy beside it is no "
                                                                   "excuse then: the training set is known by heart"),
        "swing": Threshold(SWING, "largest / smallest", "within the second half; usual scatter stays below 2"),
        "accuracy_gap": Threshold(ACCURACY_GAP, "fraction", "training minus held-out accuracy"),
        "below": Threshold(BELOW, "validation / training", "at every evaluation: mixed inputs and smoothed labels make "
                                                           "training harder than validation"),
        "learned": Threshold(LEARNED, "of the first training loss", "a first held-out loss below it is one of a model "
                                                                    "that has learned"),
        "sound_accuracy": Threshold(SOUND_ACCURACY, "fraction", "an evaluated model this good is the trained one"),
    },
)

_WORD = re.compile(r"[a-z0-9]+")
_SPLITS = frozenset(("train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev",
                     "held", "out"))
_ERRORS = frozenset(("mae", "rmse", "mape", "smape", "rmsle", "mse", "wer", "cer", "ppl", "perplexity", "bpb", "bpc",
                     "psnr"))
"""Names of measures that have units or a form of their own."""


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the first kind that fits."""
    train, held_out = main_loss(run), held_out_loss(run)
    if is_reinforcement(run) or is_adversarial(run):
        return
    acc = accuracy(run, "validation", "test")
    if acc is not None and tail(acc.values) >= SOUND_ACCURACY:
        return
    if train is None or held_out is None:
        yield from _accuracy_gap(run)
        return
    t, h = curve(train), curve(held_out)
    t = _above_zero(t)
    if len(t) < 2 or len(h) < 3 or t.values.min() <= 0.0 or h.values.min() <= 0.0:
        return
    if not _one_measure(train.original, held_out.original):
        return
    beside = aligned(t, h)
    kind = _kind(beside, h.values, t.values, train.name == held_out.name)
    if kind is not None:
        yield _finding(run, kind, beside, h)


def _one_measure(train: str, held_out: str) -> bool:
    """Whether two columns may hold the same quantity: an error in units beside a loss, or a bare "val" that stands
    beside what the log calls its loss, has another scale."""
    words, others = ({w for w in _WORD.findall(name.lower()) if w not in _SPLITS} for name in (train, held_out))
    units = _ERRORS & (words ^ others)
    return not units and bool(others or not words)


def _above_zero(t: Curve) -> Curve:
    """The curve with half of the last printed place where 0.0000 stands: a loss that was rounded to nothing."""
    unit = printed_unit(t.values)
    if unit is None or len(t) < 2 or t.values.min() < 0.0 or not (t.values > 0).any():
        return t
    return replace(t, values=np.maximum(t.values, unit / 2))


def _kind(train: Floats, held_out: Floats, whole_train: Floats, same: bool) -> str | None:
    first, last = float(held_out[0]), tail(held_out) if len(held_out) >= 6 else float(held_out[-1])
    end = median(train[-max(1, len(train) // 4):])
    trains = end <= 1.1 * float(train[0]) and end <= 1.1 * float(whole_train[0])
    learned = end <= 0.9 * float(whole_train[0]) or end <= 0.1
    if bool((held_out <= BELOW * train).all()):
        return None
    rising = trend(held_out) > 1.5 or bool((np.diff(held_out) > 0).all())
    if trains and last >= GROWTH * first and float(held_out.min()) >= IMPROVED * first and rising:
        return "growing"
    ratios = held_out / np.maximum(train, 1e-30)
    late = first < LEARNED * float(whole_train[0])
    apart = not late and float(ratios[:2].min()) >= RATIO and float(np.median(ratios)) >= RATIO
    if learned and apart and last >= IMPROVED * first - 2.0 * noise(held_out):
        return "from-start"
    halved = last < FAR_IMPROVED * first or ratio(last, first) < 2.0 * ratio(end, float(train[0]))
    if learned and same and float(ratios.min()) >= FAR and not halved:
        return "from-start"
    half = held_out[len(held_out) // 2:]
    calm = train[len(train) // 2:]
    swings = len(half) >= 4 and ratio(float(half.max()), float(half.min())) >= SWING
    if learned and swings and median(half) >= RATIO * end and ratio(float(calm.max()), float(calm.min())) < SWING / 3:
        return "erratic"
    return None


def _finding(run: Run, kind: str, train: Floats, h: Curve) -> Finding:
    v = h.values
    start, end = h.where(0, len(h) - 1)
    acc, train_acc = accuracy(run, "validation", "test"), accuracy(run, "train")
    group, s = h.series.group, h.series
    training = f"training loss goes from {number(float(train[0]))} to {number(float(train[-1]))}"
    said = f"; {group} accuracy is {percent(tail(acc.values))}" if acc is not None else ""
    ratios = v / np.maximum(train, 1e-30)
    small = float(v[-1]) < 0.1 and (acc is not None or median(ratios) < MEMORISED)
    statement = {
        "growing": f"{group} loss grows from {number(float(v[0]))} {place(s, start)} to {number(float(v[-1]))} "
                   f"{place(s, end)} ({number(ratio(float(v[-1]), float(v[0])))} times) without ever falling, while "
                   f"{training}",
        "from-start": f"{group} loss is {number(float(ratios[0]))} times the training loss at the first evaluation "
                      f"({place(s, start)}) and goes from {number(float(v[0]))} to {number(float(v[-1]))}, "
                      f"while {training}",
        "erratic": f"{group} loss jumps between {number(float(v[len(v) // 2:].min()))} and "
                   f"{number(float(v[len(v) // 2:].max()))} in the second half of the run, while {training}",
    }[kind]
    return RULE.finding(
        statement + said, s.at(start, end), s.source, bearing=Bearing.SIGN,
        severity=Severity.LOW if small else Severity.HIGH if kind == "growing" else Severity.MEDIUM,
        measured={"kind": kind, "val_first": float(v[0]), "val_end": float(v[-1]), "val_min": float(v.min()),
                  "growth": ratio(float(v[-1]), float(v[0])), "train_first": float(train[0]),
                  "train_end": float(train[-1]), "ratio_first": float(ratios[0]), "ratio_end": float(ratios[-1]),
                  "val_accuracy": tail(acc.values) if acc is not None else None,
                  "train_accuracy": tail(train_acc.values) if train_acc is not None else None, "records": len(h)},
    )


def _accuracy_gap(run: Run) -> Iterator[Finding]:
    train, held_out = accuracy(run, "train"), accuracy(run, "validation", "test")
    if train is None or held_out is None or len(held_out) < 3:
        return
    gaps = aligned(train, held_out) - held_out.values
    if float(gaps[:2].min()) < ACCURACY_GAP or median(gaps) < ACCURACY_GAP or trend(held_out.values) > 1.5:
        return
    start, end = held_out.where(0, len(held_out) - 1)
    yield RULE.finding(
        f"{held_out.series} is {ending(held_out)} while training accuracy is "
        f"{ending(train)}, "
        f"apart by {number(float(gaps[0]))} at the first evaluation already ({span(held_out.series, start, end)})",
        held_out.series.at(start, end), held_out.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM,
        measured={"kind": "accuracy", "val_accuracy": tail(held_out.values), "train_accuracy": tail(train.values),
                  "gap_first": float(gaps[0]), "gap_end": float(gaps[-1]), "records": len(held_out)},
    )
