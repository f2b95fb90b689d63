"""Whether the series of one part are those of the others at another pace: their spectrum is stretched by one ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array

SHORTEST, MOST_ROWS, MOST_PLACES = 64, 400, 4096
BINS, PER_OCTAVE = 60, 10
"""Bands of a spectrum, ten an octave down from half the rate."""
SMOOTH = 4.0
"""Bands that each one is the mean of, so that narrow lines are as wide at each pace."""
LEAST, REACH = 4, 25
"""Bands that it is stretched by: from 1.3 to 5.7 times."""
APART, TIMES, LEFT, BESIDE = 0.3, 3.0, 0.4, 3.0


@dataclass(frozen=True)
class Stretched:
    """Part `part` runs `ratio` times as fast as the others. `as_is`, `undone`, `usual`: distances of log spectra."""

    part: int
    ratio: float
    as_is: float
    undone: float
    usual: float


def time_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of a row that is time: the only one of `SHORTEST` places and more, beside few channels."""
    long = [a for a, n in enumerate(shape) if n >= SHORTEST]
    return long[0] if len(long) == 1 and len(shape) <= 2 and math.prod(shape) <= 16 * shape[long[0]] else None


def spectrum(rows: Array, axis: int) -> Array:
    """float64 shape (BINS,): mean logarithm of the power of rows in bands of equal ratio, from high to low.

    `rows`: shape (rows, ...), of which `axis` of a row is time.
    """
    values = np.moveaxis(np.asarray(rows, np.float64), axis + 1, -1)[..., :MOST_PLACES]
    values = values - values.mean(axis=-1, keepdims=True)
    window = np.hanning(values.shape[-1])
    power = np.abs(np.fft.rfft(values * window, axis=-1)) ** 2
    power = power.reshape(-1, power.shape[-1])
    total = power.sum(axis=-1)
    power = power[total > 0] / total[total > 0, None]
    if not len(power):
        return np.full(BINS, np.nan)
    mean = power.mean(axis=0)
    places = (len(mean) - 1) * 2.0 ** (-np.arange(BINS) / PER_OCTAVE)
    sums = np.concatenate([[0.0], np.cumsum(mean)])
    half = 2.0 ** (SMOOTH / 2 / PER_OCTAVE)
    low, high = places / half, np.minimum(places * half, len(mean) - 1)
    within = np.interp(high, np.arange(len(sums)), sums) - np.interp(low, np.arange(len(sums)), sums)
    return np.where(places >= 2.0, np.log(within / (high - low) + 1e-12), np.nan)


def stretched(spectra: Sequence[Array]) -> Stretched | None:
    """The one part whose spectrum is that of all others, stretched; None where there is none, or several differ."""
    every = np.stack(spectra)
    if len(every) < 4 or not np.isfinite(every[:, 0]).all():
        return None
    as_is = np.array([_distance(every[i], _mean(every, i), 0) for i in range(len(every))])
    odd = int(np.argmax(as_is))
    mine, rest = every[odd], _mean(every, odd)
    theirs = np.delete(every, odd, axis=0)
    usual = max(_distance(s, _mean(theirs, i), 0) for i, s in enumerate(theirs))
    shifts = [k for k in range(-REACH, REACH + 1) if abs(k) >= LEAST]
    undone = {k: _distance(mine, rest, k) for k in shifts}
    best = min(undone, key=lambda k: undone[k])
    other = min(v for k, v in undone.items() if k * best < 0)
    if as_is[odd] < max(APART, TIMES * usual) or undone[best] > LEFT * as_is[odd] or (
            undone[best] > BESIDE * usual + 0.1) or other < 1.5 * undone[best]:
        return None
    return Stretched(odd, 2.0 ** (best / PER_OCTAVE), float(as_is[odd]), undone[best], usual)


def _mean(spectra: Array, without: int) -> Array:
    return np.asarray(np.delete(spectra, without, axis=0).mean(axis=0))


def _distance(mine: Array, others: Array, bands: int) -> float:
    """The spread of the difference of two spectra, the first moved down by so many bands.

    Beyond its ends the other one goes on as it ends, so that all bands count at each move.
    """
    there = np.flatnonzero(np.isfinite(mine) & np.isfinite(others))
    if len(there) < 2 * PER_OCTAVE:
        return math.inf
    moved = np.clip(there + bands, there[0], there[-1])
    return float(np.std(mine[there] - others[moved]))
