"""Relations between the series of a run that hold to rounding, and from where on they do not.

A perplexity is the exponential of a loss, bits are a loss by a constant, a total is the weighted sum of its parts. None
of it is taken for granted: weights are fitted to the first part of the record, and only what holds there to the printed
digits, in series that move, is a relation. A mean over another window, a term that is not logged, a cap: they never
hold, and nothing is said. It breaks where from one record on nearly every one is off by far more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_logs.curves.shapes import noise, printed_unit
from traindx_tools.on_logs.run import LOSSES, Floats, Ints, Run, Series

FEWEST, SHARE = 40, 4
"""Records in common, and the part of them (a quarter) on which weights are fitted."""
FITTED = 30
"""Records that are fitted to at least; ten times as many as parts."""
LAST, NEARLY, SELDOM = 10, 0.9, 0.02
"""Records behind a break; the share of them that are off; the share before it that may be."""
FLOAT = 4e-6
"""What sums and exponentials of float32 differ by, relative."""
OFF, BEYOND = 0.005, 5.0
"""A break: relative to the value, and times what rounding allows."""
MOVES = 10.0
"""Times what rounding allows, by which a series scatters: a relation of two constants is none."""
LARGEST = 18.0
"""Losses above are capped by some programs before the exponential is taken."""
MOST_PARTS = 8
TOTALS = frozenset({"loss", "total", "loss/total", "loss/overall", "loss/sum", "loss/all"})
QUIET = 0.02
"""Scatter of a weight that a program sets, relative to it."""


@dataclass(frozen=True, eq=False)
class Broken:
    """`series` was what `words` say of the others; from `at` (index in `series`) on it is not.

    `kind`: "exponential", "bits" or "sum". `ratio`: its median over what it would be. `after`: "weights" where another
    weighting of the same parts holds behind the break, `part` the one whose weight changes most, `weights` that weight
    before and after.
    """

    kind: str
    series: Series
    words: str
    at: int
    held: int
    off: int
    ratio: float
    value: float
    expected: float
    after: str = ""
    part: str = ""
    weights: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class _Shared:
    """The records that several series have in common: `index` into the first, `y` its values, `x` the others'."""

    index: Ints
    y: Floats
    x: Floats


def broken(run: Run) -> Iterator[Broken]:
    """Each relation that held and breaks, once."""
    for group in dict.fromkeys((s.source, s.group, s.rank) for s in run.series if len(s) >= FEWEST):
        mine = [s for s in run.series if (s.source, s.group, s.rank) == group and len(s) >= FEWEST and not s.inferred]
        losses = [s for s in mine if s.name in LOSSES or s.name.startswith("loss/")][: 2 * MOST_PARTS]
        yield from _of_losses(mine, losses)
        parts = [s for s in losses if s.name.startswith("loss/") and s.name not in TOTALS]
        parts += [s for s in mine if s.name == "kl"] if parts else []
        if 2 <= len(parts) <= MOST_PARTS:
            yield from _first(_linear("sum", s, parts) for s in losses if s.name in TOTALS)


def _of_losses(mine: Sequence[Series], losses: Sequence[Series]) -> Iterator[Broken]:
    for s in mine:
        if s.name == "perplexity":
            yield from _first(_power(s, loss, base) for loss in losses for base in (math.e, 2.0))
        elif s.name == "bpc" or s.name in ("bits_per_byte", "bpb", "bits_per_token"):
            yield from _first(_linear("bits", s, [loss]) for loss in losses)


def _first(found: Iterator[Broken | None]) -> Iterator[Broken]:
    one = next((f for f in found if f is not None), None)
    if one is not None:
        yield one


def _shared(y: Series, others: Sequence[Series]) -> _Shared | None:
    """Records of the same line, else of the same step."""
    for key in ("line", "step"):
        keys = [np.asarray(getattr(s, key), dtype=np.float64) for s in (y, *others)]
        if not all(np.isfinite(k).all() and bool((np.diff(k) > 0).all()) for k in keys):
            continue
        common = keys[0]
        for k in keys[1:]:
            common = np.intersect1d(common, k, assume_unique=True)
        at = [np.searchsorted(k, common) for k in keys]
        values = np.array([s.values[i] for s, i in zip((y, *others), at, strict=True)])
        known = np.isfinite(values).all(axis=0) & (np.abs(values) < 1e12).all(axis=0)
        if np.count_nonzero(known) >= FEWEST:
            return _Shared(at[0][known], values[0, known], values[1:, known])
    return None


def _half(y: Floats) -> float:
    """Half of the last printed place."""
    return (printed_unit(y) or 0.0) / 2


def _power(y: Series, loss: Series, base: float) -> Broken | None:
    """A perplexity; where the loss leaves its own level at the break, a mean of exponentials would show the same."""
    shared = _shared(y, [loss])
    if shared is None:
        return None
    below = shared.x[0] * math.log(base) < LARGEST
    shared = _Shared(shared.index[below], shared.y[below], shared.x[:, below])
    if len(shared.y) < FEWEST:
        return None
    expected = np.exp(shared.x[0] * math.log(base))
    rounding = _half(shared.y) + expected * (math.log(base) * _half(shared.x[0]) + FLOAT * (1 + np.abs(shared.x[0])))
    at = _break(shared.y, expected, rounding)
    if at is None or _moves_too(shared.x[0], at):
        return None
    name = "the exponential" if base == math.e else "2 to the power"
    return _told("exponential", y, f"{name} of {loss} ({loss.original})", shared, expected, at)


def _moves_too(x: Floats, at: int) -> bool:
    before, after = x[max(0, at - 20): at], x[at: at + 20]
    spread = max(noise(x[max(0, at - 100): at]), 1e-3 * abs(float(np.median(before))))
    return abs(float(np.median(after)) - float(np.median(before))) > 4 * spread or noise(after) > 2 * spread


def _linear(kind: str, y: Series, parts: Sequence[Series]) -> Broken | None:
    shared = _shared(y, parts)
    if shared is None:
        return None
    fitted = max(FITTED, 10 * len(parts), len(shared.y) // SHARE)
    weights = _fit(shared.y[:fitted], shared.x[:, :fitted]) if fitted + LAST <= len(shared.y) else None
    if weights is None:
        return None
    expected = weights @ shared.x
    halves = np.array([_half(row) for row in shared.x])
    rounding = (_half(shared.y) + float(np.abs(weights) @ halves)) * 2 + FLOAT * (np.abs(weights) @ np.abs(shared.x))
    at = _break(shared.y, expected, rounding)
    if at is None:
        return None
    words = " + ".join(f"{w:.4g} {s.original}" for w, s in zip(weights, parts, strict=True))
    found = _told(kind, y, words.replace("+ -", "- "), shared, expected, at)
    return _reweighted(found, shared, parts, weights, rounding, at)


def _fit(y: Floats, x: Floats) -> Floats | None:
    """Weights by least squares; None where a part stands still or parts move together, so that they are not known."""
    scale = np.abs(x).max(axis=1)
    if not (scale > 0).all() or bool((x.std(axis=1) <= 1e-3 * np.abs(x.mean(axis=1))).any()):
        return None
    solved, _, rank, singular = np.linalg.lstsq((x / scale[:, None]).T, y, rcond=None)
    if rank < len(x) or float(singular[-1]) < 1e-3 * float(singular[0]):
        return None
    return np.asarray(solved / scale)


def _break(y: Floats, expected: Floats, rounding: Floats | float) -> int | None:
    """The first record from which on nearly all are off, where nearly all before hold to rounding."""
    rounding = np.broadcast_to(np.asarray(rounding), y.shape)
    apart = np.abs(y - expected)
    off = apart > np.maximum(BEYOND * rounding, OFF * np.abs(expected))
    if not off.any() or off[:FITTED].any():
        return None
    stays = np.cumsum(off[::-1])[::-1] / np.arange(len(off), 0, -1)
    starts = np.flatnonzero(off & (stays >= NEARLY))
    if not len(starts) or len(y) - starts[0] < LAST:
        return None
    at = int(starts[0])
    held = apart[:at] <= 1.5 * rounding[:at]
    moving = noise(y[:at]) > MOVES * float(np.median(rounding[:at]))
    return at if at >= FITTED and float(held.mean()) >= 1 - SELDOM and moving else None


def _told(kind: str, y: Series, words: str, shared: _Shared, expected: Floats, at: int) -> Broken:
    with np.errstate(all="ignore"):
        ratios = shared.y[at:] / expected[at:]
    known = ratios[np.isfinite(ratios)]
    return Broken(kind, y, words, int(shared.index[at]), at, len(shared.y) - at,
                  float(np.median(known)) if len(known) else math.nan, float(shared.y[at]), float(expected[at]))


def _reweighted(found: Broken, shared: _Shared, parts: Sequence[Series], weights: Floats, rounding: Floats | float,
                at: int) -> Broken:
    """The same with the weights that hold behind the break, where there are such: a program that changes them."""
    y, x = shared.y[at:], shared.x[:, at:]
    allowed = float(np.median(np.broadcast_to(np.asarray(rounding), shared.y.shape)[at:]))
    surest, best = found, 1.0
    for j, part in enumerate(parts):
        other = np.delete(weights, j) @ np.delete(x, j, axis=0)
        with np.errstate(all="ignore"):
            weight = (y - other) / x[j]
        if not np.isfinite(weight).all():
            continue
        changed = float(np.quantile(np.abs(weight - weights[j]), 0.9))
        quiet = noise(weight) / max(QUIET * changed, 2 * allowed / float(np.median(np.abs(x[j]))), 1e-300)
        if quiet <= best:
            surest, best = _with(found, part, weights[j], float(np.median(weight[-LAST:]))), quiet
    again = _fit(y, x) if surest is found else None
    if again is not None and float(np.quantile(np.abs(again @ x - y) / np.maximum(np.abs(y), 1e-12), 0.95)) < OFF:
        j = int(np.abs(again - weights).argmax())
        return _with(found, parts[j], weights[j], again[j])
    return surest


def _with(found: Broken, part: Series, before: float, after: float) -> Broken:
    return replace(found, after="weights", part=part.original, weights=(float(before), float(after)))
