"""Temperatures of one file in another unit: the spread of the others times a factor, and a level moved with it.

Degrees Fahrenheit are 1.8 C + 32, kelvin are C + 273.15 (BIPM, The International System of Units, 2019). A level alone
that drifts, as the seasons make it, says little of a few files, and so does a spread; of a file in another unit both
are those of its siblings again once the unit is undone.
"""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_data.column import Array

SPREAD = 0.1
"""Logarithms by which the siblings' spreads differ among each other, at most: a factor of 1.8 stands out of these."""
NEAR = 0.06
"""Logarithm by which the spread may differ from that of the siblings once the unit is undone."""
OUTSIDE = 1.0
"""Ranges of the siblings' levels that the level lies outside of theirs, at least."""
ROOM = 0.5
"""Ranges by which it may lie outside of theirs once the unit is undone."""

_UNITS = ((1.8, 32.0), (1 / 1.8, -32.0 / 1.8), (1.0, 273.15), (1.0, -273.15))
"""What a value in the siblings' unit is there: times, and plus. Celsius to Fahrenheit and back, to kelvin and back."""


def degrees_apart(mean: Array, std: Array, index: int) -> bool:
    """Whether the shard's values are temperatures in another unit than those of the others.

    `mean`, `std`: float64 shape (shards,), of one field or part; four siblings at least.
    """
    others = np.delete(np.arange(len(mean)), index)
    if len(others) < 4:
        return False
    levels, spreads = mean[others], np.log(std[others])
    low, high = float(levels.min()), float(levels.max())
    room = max(high - low, float(np.median(std[others])))
    if np.ptp(spreads) > SPREAD or low - OUTSIDE * room <= mean[index] <= high + OUTSIDE * room:
        return False
    for times, plus in _UNITS:
        level, left = (mean[index] - plus) / times, math.log(std[index] / times) - float(np.median(spreads))
        if abs(left) <= NEAR and low - ROOM * room <= level <= high + ROOM * room:
            return True
    return False
