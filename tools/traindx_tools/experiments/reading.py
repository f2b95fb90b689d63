"""What a run shows of an outcome, up to a step: an event with the step of its onset, or a number with its noise.

Pure: the trace is all that is looked at. A run that goes on is read as far as it came.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from traindx_tools.experiments.level import FLOOR, TIMES_NOISE, in_level, level_of
from traindx_tools.experiments.outcome import FELL, TRENDS, Outcome, at_most_one, better_high, usual_name
from traindx_tools.experiments.trace import LIVE, Curve, Trace
from traindx_tools.experiments.trend import Reference, best, reference, trend

NONFINITE_RULES = ("T101", "T102", "J101", "J102")
"""Live findings of a value that stopped being finite."""
_LOSSES = ("loss", "nll", "perplexity", "grad_norm", "mse", "total", "elbo")
GROUPS = ("validation ", "test ")
WARM_SHARE = 0.2
"""Of the steps, left out where seconds and bytes are measured: caches fill and kernels are chosen in them."""
FEWEST_OF_TREND = 2
"""Values from which on something rises or falls."""
SLACK = 1.05
"""Times the largest share that there is: from there on it is none."""
FEWEST = 4
"""Records that a number is read from at least."""


@dataclass(frozen=True)
class Seen:
    """`there`: whether the event came; `at`: the step of its onset, the seconds where no steps are counted."""

    there: bool
    at: float = math.nan
    unit: str = "step"
    said: str = ""


@dataclass(frozen=True)
class Measured:
    """A number, how much it may be off within the run, and the size by which it is judged."""

    value: float
    noise: float = 0.0
    scale: float = 0.0
    """What 5 % are taken of: the level itself, or 1 where the number is a share."""
    mark: str = ""
    """A hash of all records that it was read from."""


def event(outcome: Outcome, trace: Trace) -> Seen:
    """Whether the event is in the run so far."""
    place = _place(trace)
    if outcome.kind == "nonfinite":
        return _nonfinite(outcome, trace)
    if outcome.kind == "error":
        there = bool(trace.error) and outcome.metric.lower() in trace.error.lower()
        return Seen(there, *place, said=trace.error)
    if outcome.kind == "exit":
        return Seen(trace.ended and not trace.stopped and trace.exit_code not in (0, None), *place,
                    said=f"exit code {trace.exit_code}")
    there = trace.quiet >= outcome.quiet_seconds and not trace.ended
    return Seen(there, *place, said=f"quiet for {trace.quiet:.0f} s")


def _place(trace: Trace) -> tuple[float, str]:
    reached = trace.reached
    return (reached, "step") if reached is not None else (trace.seconds, "second")


def _nonfinite(outcome: Outcome, trace: Trace) -> Seen:
    told = [(f.where.step, f.statement) for f in trace.findings
            if f.rule in NONFINITE_RULES and f.where.step is not None and not outcome.metric]
    curves = [(name, curve_of(trace, outcome.metric)) for name in [outcome.metric] if name] or [
        (n, c) for n, c in trace.curves.items() if n.rsplit(" ", 1)[-1].removeprefix(LIVE).startswith(_LOSSES)]
    for name, curve in curves:
        bad = np.flatnonzero(~np.isfinite(curve.values)) if curve is not None else np.array([], dtype=int)
        if curve is not None and len(bad):
            first = int(bad[0])
            step = float(curve.steps[first])
            told.append((step if math.isfinite(step) else float(first + 1), f"{name} is {curve.values[first]}"))
    if not told:
        return Seen(False, *_place(trace))
    at, said = min(told, key=lambda t: t[0])
    return Seen(True, float(at), "step", said)


def curve_of(trace: Trace, metric: str) -> Curve | None:
    """The curve of this name, as it is written or as it is kept ("train_loss" is the loss); of "" the training loss, as
    measured at each backward pass where that is known."""
    if metric:
        spelled = (metric, LIVE + metric, usual_name(metric))
        return next((trace.curves[n] for n in spelled if n in trace.curves), None)
    names = (f"{LIVE}loss", *(n for n in _LOSSES if n in trace.curves),
             *(n for n in trace.curves if (n.endswith("loss") or n.startswith("loss/")) and not n.startswith(GROUPS)))
    found = [c for c in (trace.curves.get(n) for n in names) if c is not None and len(c.values)]
    return next((c for c in found if len(c.values) >= FEWEST), found[0] if found else None)


def held_out(trace: Trace, outcome: Outcome) -> Curve | None:
    """Of a gap: the curve that training is compared with."""
    if outcome.other:
        return curve_of(trace, outcome.other)
    base = usual_name(outcome.metric) or "loss"
    return next((trace.curves[g + base] for g in GROUPS if g + base in trace.curves), None)


def number(outcome: Outcome, trace: Trace, upto: float | None = None, by: Reference | None = None) -> Measured | None:
    """The number that the run shows up to a step (inclusive); None where it was not recorded there.

    `by`: what a trend is measured by, where several runs are compared (`shared_by`); None: the run's own start.
    """
    curve = curve_of(trace, metric_of(outcome))
    if curve is None:
        return None
    part = cut(curve, upto)
    if not len(part.values):
        return None
    if outcome.kind == "gap":
        return _gap(outcome, trace, part, upto)
    if outcome.kind == "step-time":
        return _typical(part)
    if outcome.kind == "memory-growth":
        return _growth(part)
    if outcome.kind in TRENDS and int(np.isfinite(part.values).sum()) < FEWEST_OF_TREND:
        return None
    level = level_of(part.values)
    noise = level.noise / math.sqrt(min(in_level(level.count), level.count))
    if outcome.kind == "level":
        return Measured(level.value, noise, abs(level.value), level.mark)
    value, off = trend(outcome.kind, part.values, level, noise, up=better_high(outcome.metric), by=by)
    return Measured(value, off, 1.0, level.mark)


def shared_by(outcome: Outcome, traces: Sequence[Trace], upto: float | None = None) -> Reference | None:
    """What the trends of these runs are measured by together, the control's trace first; None of another number."""
    if outcome.kind not in TRENDS:
        return None
    curves = [curve_of(t, metric_of(outcome)) for t in traces]
    parts = [cut(c, upto).values for c in curves if c is not None]
    if curves[0] is None or not len(parts[0]):
        return None
    return reference(parts, up=better_high(outcome.metric))


def only_value(outcome: Outcome, trace: Trace) -> bool:
    """Whether a run shows one value of the curve and no more: it has no trend, and it is the last and the best one."""
    curve = curve_of(trace, metric_of(outcome))
    return curve is not None and int(np.isfinite(curve.values).sum()) == 1


def said_of(outcome: Outcome, trace: Trace) -> str:
    """What was measured in a run, for a person: where a curve ends, or the only value that there is."""
    if outcome.kind == "level" and only_value(outcome, trace):
        return f"the only value of {outcome.metric or 'the training loss'}"
    return outcome.said


def read_from(outcome: Outcome, trace: Trace) -> str:
    """Of which values a level is made: `the mean of the last 4 of 20 values`."""
    curve = curve_of(trace, metric_of(outcome))
    if curve is None or outcome.kind != "level" or not len(curve.values):
        return ""
    count = len(curve.values)
    return "the only value" if count == 1 else f"the mean of the last {min(in_level(count), count)} of {count} values"


def is_well(outcome: Outcome, seen: Measured) -> bool:
    """Whether a number lies on the good side of its bound, by more than it may be off; of a rise, whether there is
    next to none, of a spike whether chance makes as large ones. False where nothing says what is well."""
    room = TIMES_NOISE * seen.noise
    if outcome.kind == "spike":
        return seen.value <= 2 * room
    if outcome.kind == "rise" and seen.value + room < FELL:
        return True
    return outcome.bound is not None and (
        seen.value - room >= outcome.bound if outcome.up else seen.value + room <= outcome.bound)


def counted_otherwise(outcome: Outcome, control: Trace, changed: Trace, *, edited: bool = False) -> str:
    """That a share passes 100 with the change and not without it, "" otherwise: it is another quantity then, as where
    the line that computes it was changed. `edited`: the change edits the source, so that 1 is passed by that as well;
    of other changes a share in percent may have begun below 1.
    """
    if not at_most_one(outcome.metric):
        return ""
    most = [float(np.nanmax(c.values)) if c is not None and np.isfinite(c.values).any() else 0.0
            for c in (curve_of(t, outcome.metric) for t in (control, changed))]
    if not any(most[1] > top * SLACK and most[0] <= top * SLACK for top in ((1.0, 100.0) if edited else (100.0,))):
        return ""
    return (f"{outcome.metric} comes to {most[1]:.4g} with the change and at most to {most[0]:.4g} without it: the "
            "change counts it otherwise")


def at_its_cost(outcome: Outcome, old: Sequence[Trace], new: Sequence[Trace], upto: float | None) -> str:
    """That the curve which is to be better ends worse with the change, by more than chance does; "" otherwise.

    Of a rise and of spikes it is the curve itself, of a gap the one that is held out.
    """
    if outcome.kind not in ("rise", "spike", "gap") or (outcome.metric.startswith(GROUPS) and outcome.kind == "gap"):
        return ""
    metric = outcome.metric
    if outcome.kind == "gap":
        metric = outcome.other or f"{GROUPS[0]}{usual_name(metric) or 'loss'}"
    ends = [[m for t in arm if (m := number(Outcome("level", metric), t, upto)) is not None] for arm in (old, new)]
    if not all(ends) or not all(math.isfinite(m.value) for arm in ends for m in arm):
        return ""
    before, after = (fmean(m.value for m in arm) for arm in ends)
    worse = before - after if better_high(metric) else after - before
    room = max(FLOOR * abs(before), TIMES_NOISE * max(m.noise for arm in ends for m in arm))
    return (f"{metric or 'the training loss'} ends worse, {after:.4g} with the change and {before:.4g} without it: "
            "less is learned" if worse > room else "")


def short_of_best(outcome: Outcome, old: Sequence[Trace], new: Sequence[Trace], upto: float | None, room: float) -> str:
    """That runs which do not rise have not come where the controls were before they rose: they may be on their way.

    `room`: the share of the controls' rise that may be lacking.
    """
    if outcome.kind != "rise":
        return ""
    up = better_high(outcome.metric)
    parts = [[cut(c, upto).values for t in arm if (c := curve_of(t, metric_of(outcome))) is not None]
             for arm in (old, new)]
    if not all(len(v) for arm in parts for v in arm) or not all(parts):
        return ""
    had = fmean(best(v, up=up) for v in parts[0])
    ends, last = (fmean(level_of(v).value for v in arm) for arm in parts)
    lack, risen = (had - last, had - ends) if up else (last - had, ends - had)
    return (f"it ends at {last:.4g} and the controls were at {had:.4g} before they rose: it may be later, not gone"
            if lack > max(room * risen, FLOOR * abs(had)) else "")


def without_value(outcome: Outcome, trace: Trace) -> str:
    """Why a run shows no value of an outcome, and what to do: it broke, had no time, or tells of other curves."""
    told = f"the control shows no value of {outcome.said}"
    if trace.broke:
        return f"{told}; it ended with {trace.broke}"
    if trace.stopped == "time":
        return f"{told} in {trace.seconds:.0f} s: give it longer with --budget SECONDS"
    names = [n for n in trace.curves if not n.startswith(LIVE)] or sorted(trace.curves)
    if names:
        return f"{told}; it shows {', '.join(names[:6])}: name one of them, as in --outcome {_typed(names)}"
    return (f"{told}: it neither printed nor wrote a metric. Have it print one, as in 'epoch 3 loss 0.41', or write "
            "a history.csv in its folder")


def _typed(names: Sequence[str]) -> str:
    """An outcome of the first of these as it is typed: what is held out says more than training."""
    first = next((n for n in names if n.startswith(GROUPS)), names[0])
    return shlex.quote(f"level:{first}")


def metric_of(outcome: Outcome) -> str:
    """The curve that an outcome is read from."""
    own = {"step-time": f"{LIVE}step_time", "memory-growth": f"{LIVE}resident"}
    return outcome.metric or own.get(outcome.kind, "")


def cut(curve: Curve, upto: float | None) -> Curve:
    """The records up to a step; where no steps are counted, so many records."""
    if upto is None:
        return curve
    if not np.isfinite(curve.steps).any():
        return Curve(curve.steps[:int(upto)], curve.values[:int(upto)])
    kept = ~(curve.steps > upto)
    return Curve(curve.steps[kept], curve.values[kept])


def _gap(outcome: Outcome, trace: Trace, train: Curve, upto: float | None) -> Measured | None:
    other = held_out(trace, outcome)
    held = None if other is None else cut(other, upto)
    if held is None or not len(held.values):
        return None
    mine, theirs = level_of(train.values), level_of(held.values)
    sign = -1.0 if better_high(outcome.metric) else 1.0
    return Measured(sign * (theirs.value - mine.value), max(mine.noise, theirs.noise) / math.sqrt(in_level(1)),
                    max(abs(mine.value), abs(theirs.value)), mine.mark + theirs.mark)


def _typical(part: Curve) -> Measured | None:
    later = part.values[int(len(part.values) * WARM_SHARE):]
    if len(later) < FEWEST:
        return None
    middle = float(np.median(later))
    return Measured(middle, 1.4826 * float(np.median(np.abs(later - middle))) / math.sqrt(len(later)), abs(middle))


def _growth(part: Curve) -> Measured | None:
    """The median of the slopes between pairs (Theil and Sen): one garbage collection does not enter."""
    start = int(len(part.values) * WARM_SHARE)
    known = np.isfinite(part.steps[start:])
    steps, values = part.steps[start:][known], part.values[start:][known]
    if len(values) < FEWEST or steps[-1] <= steps[0]:
        return None
    half = len(values) // 2
    slopes = (values[-half:] - values[:half]) / np.maximum(steps[-half:] - steps[:half], 1e-12)
    middle = float(np.median(slopes))
    spread = 1.4826 * float(np.median(np.abs(slopes - middle))) / math.sqrt(len(slopes))
    return Measured(middle, spread, float(np.median(values)) / max(float(steps[-1]), 1.0))
