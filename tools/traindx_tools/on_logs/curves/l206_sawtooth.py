"""The loss falls within each epoch and jumps up again at the start of the next: a sawtooth with the epoch as period.

What is learned in the course of an epoch is lost by its end. The order of the data is the usual reason: sorted by
class, by length or by source, or shuffled in a buffer far smaller than the data set, so that the model follows the
part it currently sees and forgets the others. A state that is reset every epoch (optimizer, hidden state, running
average of the metric) looks similar.

The rule cuts the series at the epochs that the log states (an epoch column, lines that announce one, steps that
start anew) and compares the level at each epoch's start with the level at the end of the one before. It reports when
nine tenths of the boundaries jump up, by a quarter of the level on average and by three standard errors of what record
to record scatter would give, and when the loss falls within three quarters of the epochs.

A step down at each epoch start is the mark of a model that has seen the data before, and is healthy. A loss that also
climbs within each epoch is not: the order is the same every time, from what is easy to what is hard
(`measured.kind` "climbing").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import HUGE, TINY, Curve, curve, ending, median, tail
from traindx_tools.on_logs.curves.learning import accuracy, epoch_numbers, is_adversarial, main_loss, number, span
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

JUMP = 0.25
BOUNDARIES = 3
SHARE_UP = 0.9
SHARE_FALLING = 0.75
ERRORS = 3.0

RULE = Rule(
    id="L206",
    name="sawtooth",
    title="The loss jumps up at every epoch start",
    severity=Severity.HIGH,
    sees="training loss, cut at the epochs",
    matters="The model follows the order of the data and forgets; validation stays poor whatever the training "
            "loss says.",
    alike=(
        "A running average that starts anew every epoch (in the logging alone).",
        "A learning rate that is restarted every epoch.",
        "Noise: then as many epochs start lower as start higher.",
    ),
    confirm=(
        "Count the classes in five consecutive batches.",
        "Shuffle the whole index list once before training: the saw vanishes if the order was the reason.",
    ),
    thresholds={
        "jump": Threshold(JUMP, "relative", "mean over all boundaries (geometric for a positive loss)"),
        "boundaries": Threshold(BOUNDARIES, "epoch boundaries", "three in a row happen by chance once in eight"),
        "share_up": Threshold(SHARE_UP, "of the boundaries", "nearly all"),
        "share_falling": Threshold(SHARE_FALLING, "of the epochs", "most"),
        "errors": Threshold(ERRORS, "standard errors", "of record-to-record scatter"),
    },
)


@dataclass(frozen=True)
class _Teeth:
    """`jumps`: shape (boundaries,), in log units where the loss is positive, else relative to its level."""

    jumps: Floats
    share_falling: float
    period: float
    scatter: float
    last: float
    next: float
    """Typical level at an epoch's end and at the start of the next, in the loss's own unit."""


def check(run: Run) -> Iterator[Finding]:
    """A finding where the main training loss is a sawtooth, in any of the artifacts that hold it."""
    main = main_loss(run)
    if main is None or is_adversarial(run):
        return
    for series in [main, *(s for s in run.find(main.name, group=main.group) if s is not main)][:16]:
        c = curve(series)
        epochs = epoch_numbers(run, series)
        teeth = _teeth(c, epochs[c.index]) if epochs is not None and len(c) >= 3 * (BOUNDARIES + 1) else None
        kind = None if teeth is None else _kind(teeth)
        if teeth is not None and kind is not None:
            yield _finding(run, c, teeth, kind)
            return


def _kind(t: _Teeth) -> str | None:
    return "sawtooth" if _is_saw(t) else "climbing" if _is_saw(_turned(t)) else None


def _teeth(c: Curve, epochs: Floats) -> _Teeth | None:
    cuts = np.flatnonzero(np.diff(epochs) != 0) + 1
    parts = [p for p in np.split(c.values, cuts) if len(p) >= 3]
    if len(parts) < BOUNDARIES + 1:
        return None
    edge = max(1, int(median(np.array([len(p) for p in parts], dtype=np.float64)) // 8))
    starts = np.array([median(p[:edge]) for p in parts])
    ends = np.array([median(p[-edge:]) for p in parts])
    scale = _scale(c.values)
    within = np.concatenate([np.diff(scale(p)) for p in parts])
    return _Teeth(
        jumps=scale(starts[1:]) - scale(ends[:-1]),
        share_falling=float(np.mean(ends < starts)),
        period=median(np.array([len(p) for p in parts], dtype=np.float64)),
        scatter=float(np.std(within)) / math.sqrt(edge),
        last=median(ends[:-1]),
        next=median(starts[1:]),
    )


def _scale(values: Floats) -> Callable[[Floats], Floats]:
    """Logarithms of a positive loss, so that one large tooth does not hide the others; else shares of the level."""
    if values.min() > 0.0:
        return lambda v: np.asarray(np.log(v))
    level = max(median(np.abs(values)), TINY)
    return lambda v: np.clip(v / level, -HUGE, HUGE)


def _is_saw(t: _Teeth) -> bool:
    mean = float(np.mean(t.jumps))
    error = t.scatter / math.sqrt(len(t.jumps))
    up = float(np.mean(t.jumps > 0)) >= SHARE_UP
    return up and t.share_falling >= SHARE_FALLING and mean >= math.log1p(JUMP) and mean >= ERRORS * error


def _turned(t: _Teeth) -> _Teeth:
    """The same teeth of the loss turned upside down."""
    return replace(t, jumps=-t.jumps, share_falling=1.0 - t.share_falling)


def _finding(run: Run, c: Curve, t: _Teeth, kind: str) -> Finding:
    start, end = c.where(0, len(c) - 1)
    acc = accuracy(run, "validation", "test")
    up = int(((t.jumps > 0) if kind == "sawtooth" else (t.jumps < 0)).sum())
    course = "falls within each epoch and jumps up" if kind == "sawtooth" else "climbs within each epoch and drops"
    said = f"; {acc.series} is {ending(acc)}" if acc is not None else ""
    return RULE.finding(
        f"{c.series} {course} at the start of the next, typically from {number(t.last)} to "
        f"{number(t.next)}, at {up} of {len(t.jumps)} epoch starts {span(c.series, start, end)}{said}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if kind == "sawtooth" else Severity.MEDIUM,
        measured={"kind": kind, "last": t.last, "next": t.next, "jump": float(np.mean(t.jumps)),
                  "boundaries": len(t.jumps), "boundaries_up": up, "records_per_epoch": t.period,
                  "val_accuracy": tail(acc.values) if acc is not None else None},
    )
