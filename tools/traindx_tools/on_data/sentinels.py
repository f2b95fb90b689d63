"""Numbers that stand for "not measured": atoms far from the rest of a field, found in all shards together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

WIDEST = 64
"""Features of a row that are looked at one by one; a wider row is looked at as a whole."""
FEWEST = 3
"""Times that the number recurs."""
TAIL = 3.0
"""Gap to the rest, in mean excesses of its outer values: exp(-3 x 3) for three values of an exponential tail."""
RANGE = 0.25
"""Gap to the rest, as a share of the range that holds nine tenths of it."""
FAR = 10.0
"""The same, beyond which any number is a mark."""
CUT = 0.5
"""Values expected beyond it from which on a tail leads there."""
KINDS = 12
"""Distinct values of the rest below which they are classes."""
ATOM = 5.0
"""Times as frequent as the most frequent of the rest's outer values."""
_CODE = re.compile(r"-?9{2,}(\.9+|\.0)?$|-?9\.9{2,}$")
_LIMITS = (-32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0, 1e20, -1e20, 1e10, -1e10)


@dataclass(frozen=True, eq=False)
class Mark:
    """A number, the feature in which it is (None: the field), and by shard which rows hold it."""

    value: float
    feature: int | None
    hits: tuple[Array, ...]
    """bool shape (rows,) of each shard."""
    gap: float
    """To the nearest other value, as a share of the range of the rest."""

    @property
    def is_code(self) -> bool:
        """Whether it is one of the numbers that serve as marks, or as far out as none is measured."""
        return self.gap >= FAR or self.value in _LIMITS or _CODE.match(f"{self.value:.6g}") is not None


def marks_in(shards: Sequence[Shard], name: str) -> Iterator[Mark]:
    """The marks of a field, of each feature of a table."""
    columns = [s.columns[name] for s in shards]
    arrays = [np.asarray(c.values) for c in columns]
    widths = {int(np.prod(a.shape[1:])) for a in arrays}
    if arrays[0].ndim == 2 and len(widths) == 1 and max(widths) <= WIDEST:
        for feature in range(max(widths)):
            yield from _marks([c.by_feature[feature] for c in columns], feature if max(widths) > 1 else None)
    else:
        yield from _marks([a.reshape(len(a), -1) if a.ndim > 1 else a for a in arrays], None)


def _marks(parts: Sequence[Array], feature: int | None) -> Iterator[Mark]:
    if any(not p.size for p in parts):
        return
    some: Array | None = None
    for top in (False, True):
        ends = [float((np.fmax if top else np.fmin).reduce(p, axis=None)) for p in parts]
        ends = [e for e in ends if math.isfinite(e)]
        if not ends:
            return
        value = max(ends) if top else min(ends)
        # of fractions the largest seldom recurs: what is cheaper to see comes first
        if parts[0].dtype.kind == "f" and sum(int(np.count_nonzero(p == value)) for p in parts) < FEWEST:
            continue
        some = _finite([_some(p) for p in parts]) if some is None else some
        if len(some) < 50 or not _apart(some, value, top):
            continue
        hits = [p == value for p in parts]
        if sum(int(np.count_nonzero(h)) for h in hits) < FEWEST:
            continue
        gap = _gap(parts, some, value, top)
        if gap is not None:
            rows = tuple(h if h.ndim == 1 else h.any(axis=1) for h in hits)
            if sum(int(h.sum()) for h in rows) >= FEWEST:
                yield Mark(value, feature, rows, gap)


def _finite(parts: Sequence[Array]) -> Array:
    some = np.concatenate(parts)
    return np.asarray(some[np.isfinite(some)])


def _some(part: Array) -> Array:
    flat = part.reshape(-1) if part.flags.c_contiguous else part.ravel()
    return flat[:: max(1, len(flat) // 20_000)].astype(np.float64)


def _apart(some: Array, value: float, top: bool) -> bool:
    """Whether the evenly spaced values leave a gap: cheap, and true of few fields."""
    rest = some[some != value]
    if len(rest) < 50:
        return False
    nearest = float(rest.max() if top else rest.min())
    low, high = np.quantile(rest, (0.05, 0.95))
    return high > low and abs(value - nearest) >= RANGE * float(high - low)


def _leads_there(rest: Array, value: float, low: float, high: float) -> bool:
    """Whether the tail of the rest falls like a power so slowly that values as far out as this one occur (Hill, 1975).

    Where that is so the value is the end of a scale at which a heavy tail was cut, and no mark.
    """
    centre = float(np.median(rest))
    side = np.sort(np.abs(rest[(rest > centre) == (value > centre)] - centre))[::-1]
    side = side[side > 0]
    count = max(20, len(side) // 20)
    if len(side) < 2 * count or value in _LIMITS or _CODE.match(f"{value:.6g}") is not None:
        return False
    if not side[0] > high - low:
        return False
    tail = float(np.mean(np.log(side[: count - 1] / side[count - 1])))
    beyond = (abs(value - centre) / float(side[count - 1])) ** (-1.0 / max(tail, 1e-3))
    return bool(len(rest) * (count / len(side)) * beyond >= CUT)


def _gap(parts: Sequence[Array], some: Array, value: float, top: bool) -> float | None:
    """The gap as a share of the rest's range, where it is wide and the rest is no set of classes; else None."""
    rest = np.sort(some[some != value])
    inner = [p[(p < value) if top else (p > value)] for p in parts]
    inner = [p for p in inner if len(p)]
    nearest = float(max(p.max() for p in inner) if top else min(p.min() for p in inner))
    low, high = np.quantile(rest, (0.05, 0.95))
    size = abs(value - nearest)
    outer = rest[::-1] if top else rest
    count = max(20, len(outer) // 50)
    kinds, times = np.unique(outer[: 10 * count], return_counts=True)
    excess = float(np.mean(np.abs(outer[:count] - outer[count - 1])))
    atoms = int((some == value).sum()) * (1.0 if len(kinds) > KINDS else 0.0)
    seldom = value != 0.0 and value != -1.0 and size >= float(high - low)
    if len(kinds) < KINDS or size < TAIL * excess or size < RANGE * float(high - low):
        return None
    if _leads_there(rest, value, low, high):
        return None
    if not seldom and atoms < ATOM * float(np.median(times)):
        return None
    return size / float(high - low)
