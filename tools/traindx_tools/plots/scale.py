"""Linear or logarithmic: which scale shows a panel's values, and where its limits lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.run import Floats

_DECADES = 100.0
_LARGEST, _SMALLEST = 1e150, 1e-150
"""Beyond these the arithmetic of margins overflows; a value there is drawn at the bound."""


@dataclass(frozen=True)
class Scale:
    """`kind` as matplotlib names it, limits, and `linear_below`: the width of a symlog scale's straight part."""

    kind: str
    low: float
    high: float
    linear_below: float = 1.0


def bounded(values: Floats) -> Floats:
    """Shape (n,): finite values within what can be drawn, everything else NaN."""
    kept = np.where(np.isfinite(values), np.clip(values, -_LARGEST, _LARGEST), np.nan)
    return np.where((kept != 0) & (np.abs(kept) < _SMALLEST), 0.0, kept)


def scale_of(lines: Sequence[Floats], *, schedule: bool = False) -> Scale:
    """Logarithmic for positive values over more than two decades, symmetrically so where zeros are among them.

    A tenth of the values may lie lower, and with zeros half of them: dips are no reason to squeeze all the rest.

    Of values with a sign the scale is symmetrically logarithmic only when the largest is 100 times the median's size.

    A learning-rate schedule (`schedule`) spans decades in its warm-up and its end, where a straight scale still shows
    it best: it is logarithmic only when a quarter of it lies two decades under its peak.
    """
    values = np.concatenate([v[np.isfinite(v)] for v in lines]) if lines else np.array([])
    if not len(values):
        return Scale("linear", 0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return Scale("linear", -0.05, 1.0)
    if low < 0:
        typical = float(np.median(sizes))
        if float(sizes.max()) / typical <= _DECADES:
            return Scale("linear", *_margin(low, high))
        return Scale("symlog", low * 2, max(high * 2, typical), typical)
    small = float(np.quantile(sizes, 0.25 if schedule else 0.1 if low > 0 else 0.5))
    if float(sizes.max()) / small <= _DECADES:
        return Scale("linear", *_margin(low, high))
    if low > 0:
        factor = (high / low) ** 0.06
        return Scale("log", low / factor, high * factor)
    start = float(sizes.min())
    return Scale("symlog", -start / 2, high * 2, start)


def _margin(low: float, high: float) -> tuple[float, float]:
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return low - room, high + room
