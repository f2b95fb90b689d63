"""Which other values of a setting are tried: enough apart that a setting that matters is seen to matter."""

from __future__ import annotations

import math

from traindx_tools.experiments.change import Option

TIMES = 10.0
"""Rates, weights, temperatures and tolerances: what is wrong by less is seldom the whole of a symptom."""
WHOLE = 4
"""Sizes, counts and lengths: ten times of a width or a depth is another program, and costs as much more."""
NEAR_ONE = 0.9
"""From here on a share is a rate of keeping (momentum, an average's decay): what counts is its distance from 1."""


def other_values(value: Option, choices: tuple[str, ...] = ()) -> tuple[Option, ...]:
    """Other values, the likeliest to undo a fault first; empty for a text of which nothing else is known."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, str):
        return choices
    if isinstance(value, int):
        return _of_integer(value)
    return _of_number(value) if math.isfinite(value) else ()


def _of_integer(value: int) -> tuple[Option, ...]:
    if value in (0, 1):
        return (1 - value,) if value == 0 else (WHOLE, 0)
    if value < 0:
        return (-value,)
    small = max(1, value // WHOLE)
    return (small, value * WHOLE) if value <= 64 else (small, max(1, value // 50), value * WHOLE)


def _of_number(value: float) -> tuple[Option, ...]:
    if value == 0:
        return (0.1,)
    if NEAR_ONE <= value < 1:
        far, near = 1 - (1 - value) * TIMES, 1 - (1 - value) / TIMES
        return (_rounded(max(far, 0.0)), _rounded(near))
    low, high = value / TIMES, value * TIMES
    if 0 < value < 1 and high >= 1 and value >= 0.2:  # a share: a dropout, a smoothing, a probability
        return (_rounded(low), _rounded((1 + value) / 2))
    return (_rounded(low), _rounded(high))


def _rounded(value: float) -> float:
    return float(f"{round(value, 15):.6g}")
