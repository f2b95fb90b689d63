"""Squares of gradients that were cut from below: many values are the same smallest one, where their means all differ.

Means of squares of different gradients differ in every digit. A clamp, or a type that has no smaller number, leaves a
heap at the smallest value, and nothing near it. Where the values are few (float16, bfloat16) each occurs often; the
heap must then stand out against the next larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.moments import Moments

_SHARE, _FEWEST, _HEAP = 0.01, 32, 5.0
"""Share and number of the values that are the smallest one, with as many different means; times as often as the next.
"""
_NAMED = {2.0**-24: "float16's smallest number", 2.0**-14: "float16's smallest normal number",
          2.0**-126: "float32's smallest normal number"}


@dataclass(frozen=True)
class Floor:
    """The heap in one parameter."""

    moments: Moments
    value: float
    share: float
    mean: float
    """The largest mean of gradients there, in magnitude."""

    @property
    def called(self) -> str:
        """What number it is, "" where none that is known."""
        return next((said for number, said in _NAMED.items() if abs(self.value / number - 1) < 0.02), "")


def floor_of(moments: Moments) -> Floor | None:
    """The heap at the smallest square, None where there is none."""
    first, second = moments.first, moments.second
    if first is None or second is None or len(first.sample) != len(second.sample) or not second.low > 0:
        return None
    squares, means = second.sample.astype(np.float64), first.sample.astype(np.float64)
    levels, counts = np.unique(squares, return_counts=True)
    own = squares == levels[0]
    if counts[0] < max(_FEWEST, _SHARE * len(squares)) or len(np.unique(means[own])) < _FEWEST / 2:
        return None
    if counts[0] < _HEAP * counts[1:4].max(initial=0):
        return None
    return Floor(moments, float(levels[0]), float(own.mean()), float(np.abs(means[own]).max()))
