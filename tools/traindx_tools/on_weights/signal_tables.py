"""Tables of spectra that a configuration gives: mel filters, cosine transforms, windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RATES = (8000.0, 11025.0, 12000.0, 16000.0, 22050.0, 24000.0, 32000.0, 44100.0, 48000.0)
LOWEST = (0.0, 20.0, 27.5, 30.0, 40.0, 50.0, 55.0, 60.0, 64.0, 80.0, 90.0, 100.0, 125.0, 150.0, 300.0)
HIGHEST = (3400.0, 3800.0, 4000.0, 5000.0, 5512.5, 6000.0, 7000.0, 7500.0, 7600.0, 7800.0, 8000.0, 10000.0, 11000.0,
           11025.0, 12000.0, 14000.0, 15000.0, 16000.0, 20000.0, 22050.0, 24000.0)
"""What papers and libraries set; half the rate is always tried as well, and what the configuration says."""
_STEP, _LOG_START, _LOG = 200.0 / 3, 1000.0, np.log(6.4) / 27
"""Slaney's Auditory Toolbox: linear below 1 kHz, 27 steps for a factor of 6.4 above."""


@dataclass(frozen=True)
class MelSettings:
    """Rate and limits in Hz. `scale`: htk, slaney; `area`: whether filters have unit area; `in_mel`: whether the flanks
    are straight over mels (Kaldi, TensorFlow) and not over Hz."""

    rate: float
    low: float
    high: float
    scale: str = "htk"
    area: bool = False
    in_mel: bool = False


def forms(rate: float, low: float, high: float) -> Iterator[MelSettings]:
    """Every way in which libraries make filters of the same settings."""
    for scale in ("slaney", "htk"):
        for area in (True, False):
            for in_mel in (False, True):
                yield MelSettings(rate, low, high, scale, area, in_mel)


def to_mel(hz: Array, scale: str) -> Array:
    """Frequencies as mels."""
    if scale == "htk":
        return np.asarray(2595.0 * np.log10(1 + hz / 700.0))
    log = _LOG_START / _STEP + np.log(np.maximum(hz, 1e-9) / _LOG_START) / _LOG
    return np.where(hz >= _LOG_START, log, hz / _STEP)


def to_hz(mel: Array, scale: str) -> Array:
    """The other way round."""
    if scale == "htk":
        return np.asarray(700.0 * (10 ** (mel / 2595.0) - 1))
    start = _LOG_START / _STEP
    return np.where(mel >= start, _LOG_START * np.exp(_LOG * (mel - start)), mel * _STEP)


@lru_cache(maxsize=4096)
def _edges(count: int, settings: MelSettings) -> Array:
    ends = to_mel(np.array([settings.low, settings.high]), settings.scale)
    return np.linspace(ends[0], ends[1], count + 2)


def transform_of(bins: int) -> int:
    """How many values a transform has of which so many bins are kept: Kaldi leaves the last one out."""
    return 2 * (bins - 1) if bins % 2 else 2 * bins


def mel_filters(count: int, bins: int, settings: MelSettings, only: tuple[int, ...] | None = None) -> Array:
    """(filters, bins). `only`: some of the filters."""
    hz = np.arange(bins) * settings.rate / transform_of(bins)
    edges = _edges(count, settings)
    points = to_hz(edges, settings.scale)
    at = np.arange(count) if only is None else np.array(only)
    place, corner = (to_mel(hz, settings.scale), edges) if settings.in_mel else (hz, points)
    left, middle, right = corner[at][:, None], corner[at + 1][:, None], corner[at + 2][:, None]
    made = np.maximum(0, np.minimum((place - left) / (middle - left), (right - place) / (right - middle)))
    return np.asarray(made * (2.0 / (points[at + 2] - points[at]))[:, None] if settings.area else made)


def cosines(rows: int, columns: int, of: int, orthonormal: bool) -> Array:
    """The first `rows` rows of a cosine transform (DCT-II) of `of` values, cut to as many columns."""
    made = np.cos(np.pi / of * (np.arange(columns) + 0.5) * np.arange(rows)[:, None])
    if not orthonormal:
        return np.asarray(made * 2.0)
    made[0] /= np.sqrt(2.0)
    return np.asarray(made * np.sqrt(2.0 / of))


def windows(size: int) -> Iterator[tuple[str, Array]]:
    """Named windows, for transforms (periodic) and for filters (symmetric)."""
    for length in (size, size - 1):
        turn = 2 * np.pi * np.arange(size) / max(1, length)
        hann = 0.5 - 0.5 * np.cos(turn)
        yield "hann", hann
        yield "hamming", 0.54 - 0.46 * np.cos(turn)
        yield "blackman", 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn)
        yield "povey", hann**0.85
        yield "sqrt hann", np.sqrt(hann)
