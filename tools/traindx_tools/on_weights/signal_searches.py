"""Mel filters, cosine transforms and windows beside what the configuration says: which one setting explains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.signal_tables import (
    HIGHEST,
    LOWEST,
    RATES,
    MelSettings,
    cosines,
    forms,
    mel_filters,
    transform_of,
    windows,
)
from traindx_tools.on_weights.table_settings import Settings
from traindx_tools.on_weights.told_table import Told, few_wrong, of_rows, of_setting

Array = NDArray[np.float64]
NEAR = 3e-3
"""Of the largest value: float32 and half precision, and frequencies that were rounded before."""
_MOST = 0.6
"""Share of the filters that are one run of bins."""


def mel(table: Array, settings: Settings) -> Told | None:
    """A bank of mel filters, filters first or last."""
    bank = _bank(table)
    if bank is None:
        return None
    count, bins = bank.shape
    asked = {n: settings.number(n) for n in ("sample_rate", "f_min", "f_max")}
    if any(len(settings.numbers(n)) > 1 for n in asked) or asked["sample_rate"] is None:
        return None
    best = _best(bank, _combinations(asked, frozenset()))
    n_fft = settings.number("n_fft")
    if best is not None and best[1].all():
        if n_fft is not None and int(n_fft) != transform_of(bins) and int(n_fft) % 2 == 0:
            return of_setting("mel", _said(count, best[0]), "n_fft", int(n_fft), transform_of(bins))
        return None
    for setting in ("sample_rate", "f_max", "f_min"):
        if asked[setting] is None:
            continue
        other = _best(bank, _combinations(asked, frozenset({setting})))
        if other is not None and other[1].all():
            found = {"sample_rate": other[0].rate, "f_min": other[0].low, "f_max": other[0].high}[setting]
            return of_setting("mel", _said(count, other[0]), setting, asked[setting], found)
    if best is None:
        return None
    apart = np.abs(mel_filters(count, bins, best[0]) - bank).max(axis=1)
    wrong = few_wrong(apart, float(bank.max()))
    return of_rows("mel", _said(count, best[0]), wrong, count, "filters") if wrong else None


def _bank(table: Array) -> Array | None:
    """The table with filters first, where it looks like filters: none below zero, each one run, mostly zeros."""
    for made in (table, table.T):
        if made.ndim != 2 or not 8 <= made.shape[0] < made.shape[1] <= 8193:
            continue
        if made.min() < 0 or (made == 0).mean() < 0.5:
            return None
        own = made > 0
        runs = (np.diff(own.astype(np.int8), axis=1, prepend=0) == 1).sum(axis=1)
        if (runs <= 1).mean() >= _MOST:
            return made
    return None


def _combinations(asked: dict[str, float | None], free: frozenset[str]) -> Iterator[MelSettings]:
    """Settings as they are told; those that are not told, or free, at every value that is usual."""
    rate, low, high = asked["sample_rate"], asked["f_min"], asked["f_max"]
    for r in RATES if "sample_rate" in free or rate is None else (rate,):
        for a in LOWEST if "f_min" in free or low is None else (low,):
            tops: Iterable[float] = (r / 2, *HIGHEST) if "f_max" in free or high is None else (high,)
            if "sample_rate" in free and high is not None and rate is not None and high == rate / 2:
                tops = (high, r / 2)
            for b in dict.fromkeys(tops):
                if a < b <= r / 2 + 1:
                    yield from forms(r, a, b)


def _best(bank: Array, tried: Iterator[MelSettings]) -> tuple[MelSettings, NDArray[np.bool_]] | None:
    """The settings of whose filters the most are there, and which."""
    count, bins = bank.shape
    some = tuple(sorted({count // 5, count // 2, count - 2}))
    near = NEAR * float(bank.max())
    best: tuple[MelSettings, NDArray[np.bool_]] | None = None
    for settings in tried:
        few = np.abs(mel_filters(count, bins, settings, some) - bank[list(some)]).max(axis=1) <= near
        if not few.any() or (best is not None and best[1].all()):
            continue
        found = np.abs(mel_filters(count, bins, settings) - bank).max(axis=1) <= near
        if best is None or found.sum() > best[1].sum():
            best = (replace(settings), found)
    return best


def _said(count: int, settings: MelSettings) -> str:
    norm = ", of unit area" if settings.area else ""
    return (f"a bank of {count} {settings.scale.upper() if settings.scale == 'htk' else 'Slaney'} mel filters{norm} "
            f"({settings.low:g} to {settings.high:g} Hz at {settings.rate:g} Hz)")


def cosine(table: Array, settings: Settings) -> Told | None:
    """A cosine transform of as many values as the configuration has mel filters."""
    if table.ndim != 2 or min(table.shape) < 4 or max(table.shape) > 1024 or np.abs(table).max() > 2.01:
        return None
    asked = settings.number("n_mels")
    best: Told | None = None
    for made in (table, table.T):
        rows, columns = made.shape
        if rows > columns or np.ptp(made[0]) > NEAR:
            continue
        for of in dict.fromkeys((columns, int(asked or columns), 23, 26, 40, 64, 80, 128)):
            for orthonormal in (True, False):
                apart = np.abs(cosines(rows, columns, of, orthonormal) - made).max(axis=1)
                if (apart <= NEAR).all():
                    return None if of == columns else of_setting("dct", f"{rows} rows of a cosine transform",
                                                                 "its length", columns, of)
                if of == columns and (wrong := few_wrong(apart, float(np.abs(made).max()))):
                    best = best or of_rows("dct", "a cosine transform (DCT-II)", wrong, rows)
    return best


def window(table: Array, settings: Settings) -> Told | None:
    """A window, whole or in the middle of zeros."""
    values = table.reshape(-1)
    size = len(values)
    if not 16 <= size <= 2**16 or values.min() < -1e-3 or not 0.99 < values.max() < 1.001:
        return None
    found = [(name, length) for length in _lengths(values, settings)
             for name, made in windows(length) if np.abs(_padded(made, size) - values).max() <= NEAR]
    asked, word = settings.numbers("win_length"), settings.word("window")
    if not found:
        return _partly(values)
    named = word if word in ("hann", "hamming", "blackman", "povey") else {"hanning": "hann", "hann_window": "hann",
                                                                           "hamming_window": "hamming"}.get(word or "")
    kinds = dict.fromkeys(n for n, _ in found)
    if named is not None and named not in kinds and settings.numbers("n_fft"):
        return of_setting("window", f"a window of {size} values", "the window", named, next(iter(kinds)))
    samples = _samples(asked, settings)
    lengths = dict.fromkeys(n for _, n in found)
    if len(samples) == 1 and settings.numbers("n_fft") and not any(abs(n - samples[0]) <= 1 for n in lengths):
        return of_setting("window", f"a {found[0][0]} window", "win_length", int(samples[0]), found[0][1])
    return None


def _samples(asked: tuple[float, ...], settings: Settings) -> tuple[float, ...]:
    """Lengths of windows in samples: below one they are seconds, and small ones at a usual rate milliseconds."""
    rate = settings.number("sample_rate")
    made = []
    for value in asked:
        if value < 1 or (value <= 64 and rate is not None and rate >= 8000):
            if rate is None:
                return ()
            value = value * rate if value < 1 else value * rate / 1000
        made.append(round(value))
    return tuple(made)


def _lengths(values: Array, settings: Settings) -> list[int]:
    """How long the window may be: all of it, or what is not zero with its ends."""
    own = np.flatnonzero(values > 1e-9)
    support = int(own[-1] - own[0]) + 1
    size = len(values)
    asked = [int(n) for n in (*settings.numbers("win_length"), *settings.numbers("n_fft")) if 8 <= n <= size]
    return [n for n in dict.fromkeys((size, support, support + 1, support + 2, *asked)) if 8 <= n <= size]


def _padded(made: Array, size: int) -> Array:
    left = (size - len(made)) // 2
    return np.pad(made, (left, size - len(made) - left))


def _partly(values: Array) -> Told | None:
    """A whole window some of whose values are others."""
    for name, made in windows(len(values)):
        if wrong := few_wrong(np.abs(made - values), 1.0):
            return of_rows("window", f"a {name} window", wrong, len(values), "values")
    return None
