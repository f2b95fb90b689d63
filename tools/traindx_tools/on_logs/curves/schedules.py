"""What a learning-rate curve tells of its schedule: where it starts, which shape it has, where it ends.

Shared by the learning-rate rules. Everything is measured on `Track`s; rates are per step (or epoch), never per record,
wherever the log numbers its records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.shapes import LARGEST, Track, line_fit, printed_unit, ratio, track, value_near
from traindx_tools.on_logs.run import Floats, Run

_PLANNED_KEYS = {
    "step": ("max_steps", "total_steps", "num_training_steps", "max_iters", "train_iters", "train_steps", "num_steps",
             "max_iter", "n_steps", "total_iters", "training_steps", "num_iterations"),
    "epoch": ("num_train_epochs", "num_epochs", "max_epochs", "n_epochs", "epochs", "total_epochs"),
}


def learning_rates(run: Run) -> list[Track]:
    """The learning rates of the run, one track a name (main first), the longest of each; negative values make none."""
    names = dict.fromkeys(s.name for s in run.series
                          if s.name == "learning_rate" or s.name.startswith("learning_rate/"))
    ordered = sorted(names, key=lambda n: (n != "learning_rate", n))
    tracks = [t for name in ordered if (t := track(run.first(name))) is not None and bool((t.y >= 0).all())]
    return [t for t in tracks if len(t) >= 2]


def rate_left(run: Run, t: Track, i: int) -> float | None:
    """Which share of its value at record `i` of a track the learning rate has at the end; None where none is logged."""
    rate = run.first("learning_rate")
    then, last = (value_near(rate, t.series, int(t.index[k])) for k in (i, len(t) - 1))
    return None if then is None or last is None or then <= 0 else last / then


def config_number(config: Mapping[str, object], keys: tuple[str, ...]) -> float | None:
    """The first positive finite number under one of these keys (last part of a dotted key, any case)."""
    flat = {str(k).lower().rpartition(".")[2].replace("-", "_"): v for k, v in config.items()}
    for key in keys:
        try:
            value = float(flat[key])  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value) and value > 0:
            return value
    return None


@dataclass(frozen=True)
class Plan:
    """Where the run ends, in the unit of a track. `known`: it was announced; else it is where the log ends."""

    end: float
    last: float
    """The last position that was logged."""
    known: bool

    @property
    def done(self) -> float:
        """Share of the plan that was logged."""
        return ratio(self.last, self.end)


def plan(run: Run, t: Track) -> Plan | None:
    """The plan of the run in the unit of `t`; None where positions start nowhere near zero or do not advance."""
    last = float(t.x[-1])
    loss = track(main_loss(run))
    if loss is not None and loss.unit == t.unit and loss.wrapped == t.wrapped and t.unit != "record":
        last = max(last, float(loss.x[-1]))
    if last <= 0 or not math.isfinite(last):
        return None
    announced = _announced(run, t)
    if announced is not None and announced >= last * 0.97:
        # an announced end of N with counting from 0 has N - 1 as its last position
        return Plan(announced, last, True)
    return Plan(last, last, False)


def _announced(run: Run, t: Track) -> float | None:
    if t.wrapped or t.unit == "record":
        return None
    if run.planned_steps is not None and run.planned_unit == t.unit and run.planned_steps > 0:
        return float(run.planned_steps)
    return config_number(run.config, _PLANNED_KEYS.get(t.unit, ()))


def planned_epochs(run: Run) -> float | None:
    """How many epochs were announced or configured."""
    if run.planned_steps is not None and run.planned_unit == "epoch":
        return float(run.planned_steps)
    return config_number(run.config, _PLANNED_KEYS["epoch"])


def epochs(run: Run) -> float | None:
    """How many epochs the run has: announced, configured or seen."""
    if (told := planned_epochs(run)) is not None:
        return told
    seen = [s.epoch[np.isfinite(s.epoch)] for s in run.series]
    ends = [(float(e[-1]), float(e[0])) for e in seen if len(e)]
    if not ends:
        return None
    last, first = max(ends)
    whole = float(last).is_integer()
    return last + 1.0 if whole and first == 0.0 else math.ceil(last)


def steps_per_epoch(run: Run) -> float | None:
    """Steps in an epoch, from records that carry both numbers, or from a note that says it."""
    for note in run.notes:
        if found := re.search(r"(?:steps|batches|iters|iterations)\s*(?:/|per)\s*epoch\D{0,3}(\d+)", note.text, re.I):
            return float(found[1])
    for s in sorted(run.series, key=len, reverse=True):
        ok = np.isfinite(s.step) & np.isfinite(s.epoch)
        step, epoch = (np.clip(a[ok], -LARGEST, LARGEST) for a in (s.step, s.epoch))
        if len(step) >= 4 and np.ptp(epoch) >= 1 and (np.diff(step) >= 0).all():
            slope, _, fit = line_fit(epoch, step)
            if fit > 0.9 and slope >= 1:
                return float(slope)
    return None


@dataclass(frozen=True)
class Decay:
    """A gradual decay from `peak` at index `start` that follows `shape` and ends, or would end, at position `end`.

    `end` is read off the fitted shape. `reached` is the index of the first record at the floor, None where the log ends
    before. `before` is the last position above the floor.
    """

    start: int
    peak: float
    floor: float
    shape: str
    end: float
    reached: int | None
    before: float
    points: int


def _arc(v: Floats) -> Floats:
    return np.asarray(np.arccos(np.clip(2 * v - 1, -1, 1)) / np.pi)


_SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda v: 1 - v,
    "cosine": _arc,
    "quadratic": lambda v: np.asarray(1 - np.sqrt(v)),
}
"""Each maps the share of the decay that is left to the share of its time that has passed."""


def decay(t: Track) -> Decay | None:
    """The gradual decay in which the curve ends; None for constants, steps, restarts and geometric ladders."""
    y = t.y
    peak = float(y.max())
    if len(t) < 5 or peak <= 0:
        return None
    start = int(np.flatnonzero(y >= peak * (1 - 1e-3))[-1])
    rest = y[start:]
    if len(rest) < 4 or (np.diff(rest) > 1e-3 * peak).any():
        return None
    floor = float(y[-1]) if y[-1] == y[-2] else 0.0
    flat = np.flatnonzero(rest > floor + 1e-3 * peak)
    reached = start + int(flat[-1]) + 1
    at_floor = reached < len(t) and y[-1] == y[-2] and len(t) - reached >= 2
    inner = slice(start, reached if at_floor else len(t))
    share = (y[inner] - floor) / max(peak - floor, peak * 1e-9)
    fitted = _fit(t.x[inner], share)
    if fitted is None or _is_exponential(t.x[inner], y[inner], fitted[3]):
        return None
    shape, end, points, _ = fitted
    before = float(t.x[reached - 1]) if at_floor else float(t.x[-1])
    if at_floor and not rounds_to_zero(t):
        end = min(max(end, before), float(t.x[reached]))
    return Decay(start, peak, floor, shape, end, reached if at_floor else None, before, points)


def _is_exponential(x: Floats, y: Floats, fit: float) -> bool:
    """Whether a constant factor a step describes the decay better than a shape that ends."""
    return bool((y > 0).all()) and line_fit(x, np.log(np.maximum(y, 1e-300)))[2] > max(fit, 0.995)


def _fit(x: Floats, share: Floats) -> tuple[str, float, int, float] | None:
    """The best of the known shapes, where it ends, how many points it rests on, and its R^2."""
    use = (share > 0.02) & (share < 0.98)
    x, share = x[use], share[use]
    if len(x) < 3 or len(np.unique(np.round(share, 6))) < 3:
        return None
    best: tuple[float, str, float] | None = None
    for name, inverse in _SHAPES.items():
        slope, at_zero, fit = line_fit(x, inverse(share))
        if slope > 0 and fit > 0.99 and (best is None or fit > best[0]):
            best = (fit, name, (1 - at_zero) / slope)
    return (best[1], best[2], len(x), best[0]) if best is not None and math.isfinite(best[2]) else None


def rounds_to_zero(t: Track) -> bool:
    """Whether the log prints so few decimals that a small learning rate of this run would be written as 0."""
    unit = printed_unit(t.y)
    return unit is not None and unit > 1e-3 * float(t.y.max())


@dataclass(frozen=True)
class Jump:
    """The learning rate rises from `before` to `after` between records `i - 1` and `i` after it had decayed."""

    i: int
    before: float
    after: float
    top: int | None = None
    """The record that reaches `after`, where it climbs there instead of jumping."""


def jumps_up(t: Track) -> list[Jump]:
    """Upward jumps, by half and more of the largest value within one record, of a rate that had been higher before."""
    if len(t) < 3:
        return []
    peak = np.maximum.accumulate(t.y)
    found = []
    for i in (np.flatnonzero(np.diff(t.y) > 0) + 1).tolist():
        before, after = float(t.y[i - 1]), float(t.y[i])
        fell = before < 0.8 * float(peak[i - 1])
        if fell and after >= 1.3 * before and after - before >= 0.2 * float(peak[i - 1]) and not _climbs(t.y, i):
            found.append(Jump(i, before, after))
    return found


def _climbs(y: Floats, i: int) -> bool:
    """Whether the record before or after climbs too: a slope of a cyclic schedule rather than a jump."""
    earlier = i >= 2 and y[i - 1] > y[i - 2] * (1 + 1e-6)
    later = i + 1 < len(y) and y[i + 1] > y[i] * 1.05
    return bool(earlier or later)
