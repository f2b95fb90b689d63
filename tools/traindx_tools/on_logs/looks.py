"""What a series looks like, in a few words, where its name says nothing."""

from __future__ import annotations

import numpy as np

from traindx_tools.on_logs.curves.shapes import head_level, noise, number, rank_correlation, tail_level, track
from traindx_tools.on_logs.role_shapes import falls_like_a_loss, moves_like_a_schedule
from traindx_tools.on_logs.run import Floats, Series

FEWEST = 5
"""Values from which a course can be told."""
WAY = 0.5
"""Rank correlation with the record from which a series goes one way."""
EVEN = 0.8


def looks_like(s: Series) -> str:
    """ "falls and flattens like a loss", "counts up", "between 0 and 1, rises", "scatters around 3"."""
    t = track(s)
    if t is None:
        return "holds no number"
    if len(t) < FEWEST:
        return f"{len(t)} values, {number(float(t.y[0]))} to {number(float(t.y[-1]))}"
    y = t.y
    if bool((y == y[0]).all()):
        return f"is {number(float(y[0]))} throughout"
    if _counts(y):
        return "counts up"
    if falls_like_a_loss(s):
        return "falls and flattens like a loss" if _flattens(y) else "falls like a loss"
    if moves_like_a_schedule(s):
        return "moves like a schedule"
    bounds = "between 0 and 1, " if bool((y >= 0).all() and (y <= 1).all()) else ""
    return f"{bounds}{_course(y)}"


def _counts(y: Floats) -> bool:
    strides = np.diff(y)
    return bool((y == np.round(y)).all() and (strides > 0).mean() >= 0.98
                and (strides == np.median(strides)).mean() >= EVEN)


def _flattens(y: Floats) -> bool:
    half, reach = len(y) // 2, len(y) // 20
    first, middle, last = head_level(y), float(np.median(y[half - reach: half + reach + 1])), tail_level(y)
    return first - middle > 2 * abs(middle - last)


def _course(y: Floats) -> str:
    way = rank_correlation(np.arange(len(y), dtype=np.float64), y)
    if abs(way) >= WAY and abs(tail_level(y) - head_level(y)) > 2 * noise(y) / max(1, len(y) // 10) ** 0.5:
        return f"{'rises' if way > 0 else 'falls'} from {number(head_level(y))} to {number(tail_level(y))}"
    return f"scatters around {number(float(np.median(y)))}"
