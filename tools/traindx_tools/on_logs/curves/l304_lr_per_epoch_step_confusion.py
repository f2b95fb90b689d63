"""The schedule counts steps where epochs were meant, or the reverse.

A scheduler moves once every time `step()` is called; whether that is a batch or an epoch, only the caller knows. Three
signatures are told apart here:

* **per-batch, run down**: the decay is over after as many *steps* as the run has *epochs*.
* **per-batch, oscillating**: a cosine with T_max = epochs goes down and up again with a period of twice that number of
  steps, many times in an epoch.
* **per-epoch**: the rate changes only from one epoch to the next and in the whole run gets no further than a few steps
  of a schedule counted in steps: the warm-up never ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import decay, epochs, learning_rates, plan, steps_per_epoch
from traindx_tools.on_logs.curves.shapes import Track, line_fit, number, ratio
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

NEAR = 0.15

RULE = Rule(
    id="L304",
    name="lr-per-epoch-step-confusion",
    title="The schedule counts steps for epochs, or epochs for steps",
    severity=Severity.HIGH,
    sees="Length or period of the schedule in steps against the number of epochs; a warm-up that moves once an epoch "
         "and never ends.",
    matters="The rate is gone in the first epoch, swings wildly, or never gets off the ground.",
    alike=("A cyclic schedule with cycles of thousands of steps.", "A warm-up of epochs in a run that was stopped.",
           "A learning-rate range test."),
    confirm=("Look whether scheduler.step() stands inside or outside the loop over batches, and in which unit T_max, "
             "step_size or total_steps was given.",),
    thresholds={
        "near": Threshold(NEAR, "relative difference between the schedule's steps and the epochs", "logging intervals"),
        "warm_up": Threshold(3, "epochs", "a warm-up that fills a run of fewer epochs may be a short test"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    count, each = epochs(run), steps_per_epoch(run)
    for t in learning_rates(run):
        found = _run_down(run, t, count, each) or _oscillating(t, count, each) or _per_epoch(run, t, count, each)
        if found is not None:
            yield found
            return


def _finding(t: Track, text: str, kind: str, **measured: float | None) -> Finding:
    return RULE.finding(text, t.at(0, -1), t.series.source, bearing=Bearing.SIGN,
                        measured={"kind": kind, "position": float(t.series.position[t.index[0]]), **measured})


def _run_down(run: Run, t: Track, count: float | None, each: float | None) -> Finding | None:
    if t.unit != "step" or count is None or count < 5 or (each is not None and each < 3):
        return None
    d, where = decay(t), plan(run, t)
    if d is None or d.reached is None or where is None or d.end > 0.5 * where.end:
        return None
    if abs(d.end - count) > max(1.0, NEAR * count):
        return None
    text = (f"the {d.shape} decay is over at {t.place(d.reached)}, after as many steps as the run has epochs "
            f"({count:.4g}), and {where.last - d.end:.4g} steps follow")
    return _finding(t, text, "per-batch", schedule_end=d.end, epochs=count, steps_per_epoch=each)


def _oscillating(t: Track, count: float | None, each: float | None) -> Finding | None:
    if t.unit != "step" or count is None or count < 3 or len(t) < 10:
        return None
    period = _period(t)
    if period is None or abs(period / 2 - count) > max(1.0, NEAR * count) or (each is not None and period > 2 * each):
        return None
    high, low = number(float(t.y.max())), number(float(t.y.min()))
    text = (f"the learning rate swings between {high} and {low} with a period of {period:.4g} steps, twice the number "
            f"of epochs ({count:.4g}): a schedule in epochs is stepped at every batch")
    return _finding(t, text, "per-batch", period=period, epochs=count, steps_per_epoch=each)


def _period(t: Track) -> float | None:
    """Distance between the troughs of a rate that swings over nearly its whole range, at least twice."""
    low = t.y <= t.y.min() + 0.15 * np.ptp(t.y)
    high = t.y >= t.y.max() - 0.15 * np.ptp(t.y)
    if float(t.y.min()) > 0.3 * float(t.y.max()):
        return None
    marks = [(i, bool(low[i])) for i in np.flatnonzero(low | high)]
    turns = [i for (i, a), (_, b) in zip(marks[1:], marks[:-1], strict=True) if a != b]
    if len(turns) < 3:
        return None
    return float(2 * np.median(np.diff(t.x[turns])))


def _per_epoch(run: Run, t: Track, count: float | None, each: float | None) -> Finding | None:
    """A rate proportional to the number of the epoch, from nothing to the end of a finished run."""
    if count is None or count < 3 or not _moves_by_epoch(t) or (each is not None and each < 3):
        return None
    where = plan(run, t)
    if where is None or not where.known or where.last < where.end - max(1.0, 0.03 * where.end):
        return None
    values = t.y[np.concatenate([[True], np.diff(t.y) > 0])]
    if len(values) < 3 or (np.diff(t.y) < 0).any():
        return None
    slope, start, fit = line_fit(np.arange(1.0, len(values) + 1), values)
    if fit < 0.999 or slope <= 0 or abs(start) > 1.5 * slope:
        return None
    text = (f"the learning rate still rises when training ends, by {number(slope)} an epoch from "
            f"{number(float(values[0]))} to {number(float(values[-1]))}: it moves once an epoch and never leaves a "
            "warm-up that is counted in steps")
    last = float(values[-1])
    return _finding(t, text, "per-epoch", increment=slope, epochs=count, last=last, steps_per_epoch=each)


def _moves_by_epoch(t: Track) -> bool:
    """Whether the rate is constant inside an epoch, or the log has one record an epoch."""
    if t.unit == "epoch":
        whole = bool((t.x == np.round(t.x)).all())
        return whole and ratio(len(t), float(np.ptp(t.x)) + 1) <= 1.01
    epoch = t.series.epoch[t.index]
    if not np.isfinite(epoch).all():
        return False
    inside = np.diff(np.floor(epoch)) == 0
    return bool(inside.any()) and not bool(np.diff(t.y)[inside].any())
