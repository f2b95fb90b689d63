"""What a run shows of an outcome, up to a step: an event with the step of its onset, or a number with its noise.

Pure: the trace is all that is looked at. A run that goes on is read as far as it came.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.experiments.level import TIMES_NOISE, Level, in_level, level_of
from traindx_tools.experiments.outcome import FELL, Outcome, better_high, usual_name
from traindx_tools.experiments.trace import LIVE, Curve, Trace

NONFINITE_RULES = ("T101", "T102", "J101", "J102")
"""Live findings of a value that stopped being finite."""
_LOSSES = ("loss", "nll", "perplexity", "grad_norm", "mse", "total", "elbo")
GROUPS = ("validation ", "test ")
WARM_SHARE = 0.2
"""Of the steps, left out where seconds and bytes are measured: caches fill and kernels are chosen in them."""
FEWEST_OF_TREND = 2
"""Values from which on something rises or falls."""
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


def number(outcome: Outcome, trace: Trace, upto: float | None = None) -> Measured | None:
    """The number that the run shows up to a step (inclusive); None where it was not recorded there."""
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
    if outcome.kind in ("fall", "rise") and int(np.isfinite(part.values).sum()) < FEWEST_OF_TREND:
        return None
    level = level_of(part.values)
    noise = level.noise / math.sqrt(min(in_level(level.count), level.count))
    if outcome.kind == "level":
        return Measured(level.value, noise, abs(level.value), level.mark)
    return _share(outcome, part, level, noise)


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
    next to none. False where nothing says what is well."""
    room = TIMES_NOISE * seen.noise
    if outcome.kind == "rise" and seen.value + room < FELL:
        return True
    return outcome.bound is not None and (
        seen.value - room >= outcome.bound if outcome.up else seen.value + room <= outcome.bound)


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


def _share(outcome: Outcome, part: Curve, level: Level, noise: float) -> Measured:
    """How far it went the right way from its start, or back from its best, as a share of the start."""
    up = better_high(outcome.metric)
    first = _first(part.values)
    noise = math.hypot(noise, level.noise / math.sqrt(_at_start(part.values)))
    share = _unit(part.values, first) if up else abs(first) or 1.0
    if outcome.kind == "fall":
        moved = level.value - first if up else first - level.value
    else:
        moved = max(_smoothed(part.values), key=lambda v: v if up else -v, default=first) - level.value
        moved = moved if up else -moved
    return Measured(moved / share, noise / share, 1.0, level.mark)


def _unit(values: NDArray[np.float64], first: float) -> float:
    """Of a score the distance to the best there is: 1, or 100 where it is counted in percent."""
    known = values[np.isfinite(values)]
    top = 1.0 if not len(known) or known.max() <= 1 else 100.0 if known.max() <= 100 else float(known.max())
    return max(top - first, 0.05 * top)


def _first(values: NDArray[np.float64]) -> float:
    """The first tenth of the records, at most three: a single batch may be an odd one."""
    known = values[np.isfinite(values)]
    return float(known[:_at_start(values)].mean()) if len(known) else math.nan


def _at_start(values: NDArray[np.float64]) -> int:
    """How many records the start is the mean of."""
    return max(1, min(3, int(np.isfinite(values).sum()) // 10))


def _smoothed(values: NDArray[np.float64]) -> Iterator[float]:
    """Levels of pieces as long as the last one."""
    width = min(in_level(len(values)), len(values))
    for start in range(0, len(values) - width + 1, max(1, width // 2)):
        window = values[start:start + width]
        if np.isfinite(window).all():
            yield float(window.mean())
