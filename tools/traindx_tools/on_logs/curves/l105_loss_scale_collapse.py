"""The dynamic loss scale walks down and does not stop.

A scaler halves its scale after a step with non-finite gradients and doubles it after many good ones (2,000 by default
in PyTorch). A few halvings at the beginning (65536 is a guess) and single ones later are how it is meant to work. When
it halves again and again, down to 1 and below or to its floor, no scale helps: the forward pass itself overflows, or
the weights are NaN already. The scale is then a thermometer, not the illness.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.announced import REDUCED, reduced_scale
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, track
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

FLOOR = 1.0
DECAY = 2.0**-8
SKIPPED = 6
LARGE = 16.0
"""Times the last scale from which on a doubling before counts as one: below, it is the scaler that tries again."""
LATE = 0.1
"""Of the log: skipped steps at the floor there say that the scale never recovered."""

RULE = Rule(
    id="L105",
    name="loss-scale-collapse",
    title="The loss scale collapses",
    severity=Severity.HIGH,
    sees="The first and last loss scale, how often it was halved, whether it ever grew, and whether the loss was NaN "
         "before or after.",
    matters="Every halving is a skipped step; at the floor every step is skipped and nothing is learned.",
    alike=("A few halvings in the first steps, then a constant or growing scale: calibration.",
           "A scale that is 1 all the time: bfloat16, no scaling."),
    confirm=("Register a forward hook that reports the first module whose output holds inf in float16 (limit 65504).",
             "Run the same steps in bfloat16 or float32: a range problem goes away, a NaN in the data stays."),
    thresholds={
        "floor": Threshold(FLOOR, "scale", "a scale below 1 shrinks gradients: it can only hide overflow"),
        "decay": Threshold(DECAY, "last / first", "arithmetic: eight halvings without a doubling, still falling"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    printed = run.first("loss_scale")
    if printed is None or printed.original == REDUCED:
        yield from _announced(run)
        return
    t = track(printed)
    if t is None or len(t) < 3 or not bool((t.y > 0).any()) or not _collapses(t):
        return
    first, last = float(t.y[0]), float(t.y[-1])
    start = _last_fall(t)
    peak = float(t.y[start])
    lowest = max(float(t.y[start:].min()), 5e-324)
    halvings = round(float(np.log2(peak) - np.log2(lowest))) if peak > 0 else 0
    order = _loss_and_scale(run, t, start)
    yield RULE.finding(
        f"the loss scale falls from {number(peak)} at {t.place(start)} to {number(last)} at {t.place(-1)} "
        f"({halvings} halvings) without growing back; {order[1]}", t.at(start, -1), t.series.source,
        bearing=Bearing.SIGN,
        measured={"first": first, "last": last, "lowest": float(t.y.min()), "halvings": halvings,
                  "loss_nonfinite": order[0], "position": float(t.series.position[t.index[start]])})


def _announced(run: Run) -> Iterator[Finding]:
    """Skipped steps one after another, each announced with a smaller scale, and hardly a record between them."""
    told = [(n, scale) for n in run.notes if (scale := reduced_scale(n)) is not None]
    if len(told) < SKIPPED:
        return
    (first, high), (last, low) = told[0], told[-1]
    source = first.source
    printed = [s for s in run.series if s.source == source and s.original != REDUCED]
    records = {int(x) for s in printed for x in s.line[s.line > first.line]}
    at_floor = low <= FLOOR and sum(scale <= FLOOR for _, scale in told) > 1 and _goes_on(run, source, last.line)
    crowded = low <= DECAY * high and len(records) <= len(told)
    if not (at_floor or crowded) or any(n.source != source for n, _ in told):
        return
    where = Location(file=source, line=first.line, end_line=last.line, quote=last.text[:200])
    yield RULE.finding(
        f"{len(told)} steps are skipped for overflow, from line {first.line} to {last.line}, and the loss scale is "
        f"reduced from {number(high)} to {number(low)}; {len(records)} records of metrics stand between", where, source,
        bearing=Bearing.SIGN,
        measured={"first": high, "last": low, "lowest": low, "halvings": len(told), "loss_nonfinite": "unknown",
                  "position": float(first.line)})


def _goes_on(run: Run, source: str, line: int) -> bool:
    """Whether a line about a skipped step stands in the last tenth of a log: nothing got better since."""
    end = max((int(s.line[-1]) for s in run.series if s.source == source and len(s)), default=line)
    return line >= (1 - LATE) * end


def _collapses(t: Track) -> bool:
    peak, last = float(t.y.max()), float(t.y[-1])
    if peak <= FLOOR:
        return False
    tail = t.y[len(t) // 2:]
    grows = bool((np.diff(t.y[int(np.argmin(t.y)):]) > 0).any()) and last > FLOOR
    if grows:
        return False
    at_floor = last <= FLOOR and float(t.y.min()) <= FLOOR
    still_falling = last <= DECAY * peak and int((np.diff(tail) < 0).sum()) >= max(2, len(tail) // 4)
    return at_floor or still_falling


def _last_fall(t: Track) -> int:
    """The record from which the scale fell for the last time: the height of what came after its last large doubling."""
    rises = np.flatnonzero((np.diff(t.y) > 0) & (t.y[1:] >= LARGE * max(float(t.y[-1]), float(t.y.min()))))
    begin = int(rises[-1]) + 1 if len(rises) else 0
    return begin + int(np.flatnonzero(t.y[begin:] >= t.y[begin:].max())[-1])


def _loss_and_scale(run: Run, t: Track, start: int) -> tuple[str, str]:
    """Whether the loss turned non-finite before, with or after the first halving: a word and a clause."""
    loss = main_loss(run)
    if loss is None:
        return "unknown", "no loss is logged beside it"
    if loss.finite.all():
        return "never", "the loss itself stays finite"
    i = int(np.argmax(~loss.finite))
    halved = int(t.index[min(start + 1, len(t) - 1)])
    same = loss.source == t.series.source
    mine, other = (loss.line[i], t.series.line[halved]) if same else (loss.position[i], t.series.position[halved])
    word = "same" if mine == other else "before" if mine < other else "after"
    said = {"same": "the loss turns {} in the record in which the scale is first lower",
            "before": "the loss is {} before the scale falls", "after": "the loss turns {} only after that"}[word]
    return word, said.format("nan" if np.isnan(loss.values[i]) else "inf") + f" ({loss.unit} {loss.position[i]:g})"
