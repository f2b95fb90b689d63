"""Student's t for whole degrees of freedom, without a library: the finite sums of Abramowitz and Stegun, 26.7.3-4."""

from __future__ import annotations

import math
from functools import lru_cache


def within(t: float, degrees: int) -> float:
    """The probability that |T| is smaller than `t` >= 0. Raises ValueError for fewer than one degree of freedom."""
    if degrees < 1:
        raise ValueError(f"Student's t has at least one degree of freedom, got {degrees}")
    theta = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = degrees % 2 == 1
    if degrees == 1:
        return 2 * theta / math.pi
    term = cosine if odd else 1.0
    total = term
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


@lru_cache(maxsize=256)
def two_sided(alpha: float, degrees: int) -> float:
    """The t beyond which |T| falls with probability `alpha` (0 < alpha < 1)."""
    low, high = 0.0, 1.0
    while within(high, degrees) < 1 - alpha:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, degrees) < 1 - alpha else (low, middle)
    return high
