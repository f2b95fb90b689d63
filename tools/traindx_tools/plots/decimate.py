"""Fewer points with the same picture: a line of a million values drawn in a few thousand, every spike kept."""

from __future__ import annotations

import numpy as np

from traindx_tools.on_logs.run import Floats

DRAWN = 4000
"""Points that one line may have: two a pixel column at 2,000 px are more than any screen shows."""


def decimate(x: Floats, y: Floats, drawn: int = DRAWN) -> tuple[Floats, Floats]:
    """The lowest and the highest value of each of `drawn / 2` equal slices and the two ends, in their order.

    `x`, `y`: shape (n,), any order; NaN in `y` is a gap in the line. A slice without a finite value stays a gap, a gap
    shorter than a slice may close (gaps are marked apart, see `gaps`). Returns arrays of at most `drawn` + 2 values.
    """
    n = len(y)
    if n <= drawn:
        return x, y
    slices = max(drawn // 2, 1)
    width = -(-n // slices)
    padded = np.full(slices * width, np.nan)
    padded[:n] = y
    table = padded.reshape(slices, width)
    known = np.isfinite(table)
    low = np.where(known, table, np.inf).argmin(axis=1)
    high = np.where(known, table, -np.inf).argmax(axis=1)
    start = np.arange(slices) * width
    index = np.unique(np.concatenate([[0, n - 1], low + start, high + start]))
    index = index[index < n]
    return x[index], y[index]


_NOISY = 0.04
"""Typical change from one record to the next, as a share of the whole range, above which a line hides its trend."""


def trend_of(x: Floats, y: Floats, points: int = 400) -> tuple[Floats, Floats] | None:
    """Running median over a fortieth of the records, for a line so noisy that its trend is hidden; else None.

    `x`, `y`: shape (n,). Returns arrays of at most `points` values. Windows of more than 200 records are sampled.
    """
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if len(y) < 100:
        return None
    share = _NOISY if len(y) <= DRAWN else _NOISY / 4  # a decimated line shows the extremes only: noise looks larger
    low, high = np.quantile(y, [0.02, 0.98])
    if high <= low or float(np.median(np.abs(np.diff(y)))) < share * float(high - low):
        return None
    width = max(len(y) // 40, 7)
    windows = np.lib.stride_tricks.sliding_window_view(y, width)
    stride = -(-len(windows) // points)
    middle = np.median(windows[::stride, :: max(1, width // 200)], axis=1)
    return x[width // 2 :][: len(windows)][::stride], np.asarray(middle, dtype=np.float64)


def gaps(x: Floats, bad: np.ndarray, merge: float) -> list[tuple[float, float, int]]:
    """Stretches of bad values as (first x, last x, how many), those closer than `merge` joined.

    `x`: shape (n,), `bad`: bool of shape (n,).
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]])))
    spans: list[tuple[float, float, int]] = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        first, last, count = float(x[start]), float(x[stop - 1]), int(stop - start)
        if spans and 0 <= first - spans[-1][1] <= merge:
            spans[-1] = (spans[-1][0], last, spans[-1][2] + count)
        else:
            spans.append((first, last, count))
    return spans
