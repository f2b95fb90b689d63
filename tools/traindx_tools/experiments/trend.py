"""How far a curve went: its fall from a start, its rise from its best, its largest jump, as shares of one reference.

Two runs that differ in one thing are measured from one start, that of the control: a run that is well from its first
record on has not fallen since, and one that starts worse has a long way that leads nowhere. What cannot be judged by
that is a change that counts the loss itself otherwise (a sum where there was a mean, another weight of a term): then
everything is lower from the start. Where a change may do so, and nothing shows that it does not, both ways have to
agree (`may_rescale`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.experiments.level import Level, in_level
from traindx_tools.experiments.trace import LIVE, Trace

Values = NDArray[np.float64]

TIMES_FIRST = 2.0
"""Between the losses of two runs at their first backward passes, before anything was learned: so far the same loss may
lie apart with other batches and weights."""
OTHERWISE = frozenset({
    "batch-size", "data-from", "edit", "files-alone", "files-left-out", "float32", "float64", "indices-alone",
    "indices-left-out", "inputs-zeroed", "no-accumulation", "no-augmentation", "no-autocast", "no-loss-scaling",
    "one-source", "patch", "rows-alone", "rows-left-out", "set", "checkpoint-from"})
"""Changes that may count the loss otherwise: its code, its settings, its targets, its rows."""


@dataclass(frozen=True)
class Reference:
    """What the trends of all runs of an experiment are measured by."""

    start: float
    """Where the control begins."""
    unit: float
    """What a fall and a rise are shares of: of a loss its start, of a score the way from there to the best there is."""
    typical: float
    """What a jump is a share of: the middle of the control."""


def reference(runs: Sequence[Values], *, up: bool) -> Reference:
    """From the records of the control, which comes first, and of the runs that are compared with it."""
    known = runs[0][np.isfinite(runs[0])]
    first = _first(runs[0])
    unit = _unit(np.concatenate(runs), first) if up else abs(first) or 1.0
    middle = float(np.median(np.abs(known))) if len(known) else 1.0
    return Reference(first, unit, middle or unit)


def trend(kind: str, values: Values, level: Level, noise: float, *, up: bool, by: Reference | None) -> tuple[float,
                                                                                                      float]:
    """A `fall`, `rise` or `spike` and how much it may be off, as shares. `by` None: from the run's own start."""
    own = by or reference([values], up=up)
    if kind == "spike":
        share = own.typical
        moved = max(jumps(values, up=up), default=0.0)
        return moved / share, level.noise / share
    if by is None:
        noise = math.hypot(noise, level.noise / math.sqrt(_at_start(values)))
    if kind == "fall":
        moved = level.value - own.start if up else own.start - level.value
    else:
        moved = max(_smoothed(values), key=lambda v: v if up else -v, default=own.start) - level.value
        moved = moved if up else -moved
    return moved / own.unit, noise / own.unit


def jumps(values: Values, *, up: bool) -> Iterator[float]:
    """How far each record lies on the wrong side of the middle of those before it."""
    known = values[np.isfinite(values)]
    width = in_level(len(known))
    for i in range(width, len(known)):
        ahead = float(np.median(known[i - width:i])) - float(known[i])
        yield ahead if up else -ahead


def best(values: Values, *, up: bool) -> float:
    """The best level of a piece of a curve; NaN where no piece of it is finite."""
    found = list(_smoothed(values))
    return math.nan if not found else max(found) if up else min(found)


def may_rescale(name: str, control: Trace, changed: Trace) -> bool:
    """Whether a change of this name may have made another quantity of the loss.

    It has not where the instruments saw the losses of the first backward passes alike.
    """
    if name not in OTHERWISE:
        return False
    losses = [t.curves.get(f"{LIVE}loss") for t in (control, changed)]
    first = [_first(c.values) for c in losses if c is not None and len(c.values)]
    if len(first) < len(losses) or not all(math.isfinite(f) and f > 0 for f in first):
        return True
    return max(first) > TIMES_FIRST * min(first)


def _unit(values: Values, first: float) -> float:
    """Of a score the distance to the best there is: 1, or 100 where it is counted in percent."""
    known = values[np.isfinite(values)]
    top = 1.0 if not len(known) or known.max() <= 1 else 100.0 if known.max() <= 100 else float(known.max())
    return max(top - first, 0.05 * top)


def _first(values: Values) -> float:
    """The first tenth of the records, at most three: a single batch may be an odd one."""
    known = values[np.isfinite(values)]
    return float(known[:_at_start(values)].mean()) if len(known) else math.nan


def _at_start(values: Values) -> int:
    """How many records the start is the mean of."""
    return max(1, min(3, int(np.isfinite(values).sum()) // 10))


def _smoothed(values: Values) -> Iterator[float]:
    """Levels of pieces as long as the last one."""
    width = min(in_level(len(values)), len(values))
    for start in range(0, len(values) - width + 1, max(1, width // 2)):
        window = values[start:start + width]
        if np.isfinite(window).all():
            yield float(window.mean())
