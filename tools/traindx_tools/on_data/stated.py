"""What files say of themselves beside their rows: single numbers and texts, short lists of names.

Attributes of HDF5, numbers and texts without rows of an npz file: the length of a step, a unit, a scale, which channel
is which. Where one file says another thing than its siblings, its numbers can be looked at for it: they differ by the
same ratio, or fit the siblings' in the order that the list gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

Said = float | str | tuple[str, ...]
MOST_SAID, MOST_NAMES, MOST_TEXT = 64, 256, 200
APART, NEAR = 0.04, 0.03
"""Ratios of two numbers that count as two; and by how much a measured ratio may miss a stated one."""
AGREE = 0.02
"""By how much siblings may differ among themselves in what is measured."""
FIT = 0.25
"""Share of the distance between the channels of two files that is left in the stated order."""
LEVEL = 0.05
"""Of their mean: channels that differ by less in a statistic do not differ in it."""
MOST_FIELDS, MOST_ROWS = 24, 2_000


def said_of(value: Any) -> Said | None:
    """A number, a text or a list of names; None of anything else."""
    array = np.asarray(value)
    if array.ndim == 0 or array.size == 1:
        one = array.reshape(-1)[0] if array.size else None
        if isinstance(one, (bytes, str)):
            return _text(one)
        number = array.dtype.kind in "iuf" and array.size == 1
        return float(array.reshape(-1)[0]) if number and math.isfinite(float(array.reshape(-1)[0])) else None
    names = array.reshape(-1)
    if array.ndim == 1 and 2 <= len(names) <= MOST_NAMES and all(isinstance(n, (bytes, str)) for n in names):
        return tuple(_text(n) for n in names)
    return None


def _text(value: bytes | str) -> str:
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))[:MOST_TEXT]


@dataclass(frozen=True)
class Confirmed:
    """A file whose numbers show what it says. `measured`: what of them, in words."""

    name: str
    shard: Shard
    said: Said
    usual: Said
    siblings: int
    field: str
    measured: str
    kind: str
    """"order" or "ratio"."""


def confirmed(shards: Sequence[Shard]) -> Iterator[Confirmed]:
    """One for each property that one file alone says otherwise than its siblings, and whose numbers show it."""
    names = dict.fromkeys(n for s in shards for n in s.stated)
    for name in list(names)[:MOST_SAID]:
        group = [s for s in shards if name in s.stated]
        kinds = {s.stated[name] for s in group}
        if len(group) < 3 or len(kinds) != 2:
            continue
        for said in kinds:
            odd = [s for s in group if s.stated[name] == said]
            others = [s for s in group if s.stated[name] != said]
            if len(odd) == 1 and len(others) >= 2:
                usual = others[0].stated[name]
                found = _order(odd[0], others, said, usual) or _ratio(odd[0], others, said, usual)
                if found is not None:
                    yield Confirmed(name, odd[0], said, usual, len(others), *found)


def _order(odd: Shard, others: Sequence[Shard], said: Said, usual: Said) -> tuple[str, str, str] | None:
    """Channels that fit those of the siblings in the order of the list."""
    if not isinstance(said, tuple) or not isinstance(usual, tuple) or sorted(said) != sorted(usual):
        return None
    order = [said.index(n) for n in usual] if len(set(said)) == len(said) else []
    for field in _numbers(odd, others):
        shape = odd.columns[field].row_shape
        for axis in (a for a, n in enumerate(shape) if n == len(order)):
            mine, theirs = _channels(odd, field, axis), np.stack([_channels(s, field, axis) for s in others])
            scale = np.maximum(theirs.mean(0).std(0), LEVEL * np.abs(theirs).mean((0, 1))) + 1e-12
            between = float((np.abs(theirs - theirs.mean(0)) / scale).max())
            before, after = (float((np.abs(m - theirs.mean(0)) / scale).mean()) for m in (mine, mine[order]))
            if after <= FIT * before and before > between:
                return field, (f"the channels of {field} are {before:.2g} spreads from theirs as they stand and "
                               f"{after:.2g} in the siblings' order"), "order"
    return None


def _channels(shard: Shard, field: str, axis: int) -> Array:
    """float64 shape (channels, 2): mean and spread."""
    values = np.asarray(shard.columns[field].values[:MOST_ROWS], np.float64)
    rows = np.moveaxis(values, axis + 1, 0).reshape(values.shape[axis + 1], -1)
    return np.stack([np.nanmean(rows, 1), np.nanstd(rows, 1)], 1)


def _ratio(odd: Shard, others: Sequence[Shard], said: Said, usual: Said) -> tuple[str, str, str] | None:
    """A measure of the file that is as many times that of its siblings."""
    if not isinstance(said, float) or not isinstance(usual, float) or said * usual <= 0:
        return None
    stated = said / usual
    if abs(math.log(stated)) < APART:
        return None
    for field, words, mine, theirs in _measures(odd, others):
        if not all(v > 0 and math.isfinite(v) for v in (mine, *theirs)):
            continue
        if max(theirs) > (1 + AGREE) * min(theirs):
            continue
        seen = mine / float(np.median(theirs))
        if min(abs(math.log(seen / stated)), abs(math.log(seen * stated))) <= NEAR:
            return field, f"its {words} is {seen:.4g} times theirs, where {_number(said)}/{_number(usual)} is " \
                          f"{stated:.4g}", "ratio"
    return None


def _number(value: float) -> str:
    return f"{value:.6g}"


def _measures(odd: Shard, others: Sequence[Shard]) -> Iterator[tuple[str, str, float, list[float]]]:
    """Ratios of two whole numbers of a row, then spreads and means, of the file and of each sibling."""
    fields = list(_numbers(odd, others))[:MOST_FIELDS]
    counts = [f for f in fields if not odd.columns[f].row_shape and odd.columns[f].values.dtype.kind in "iu"]
    for one, other in combinations(counts, 2):
        yield (one, f"{one} over {other}", _over(odd, one, other), [_over(s, one, other) for s in others])
    for field in fields:
        for words, of in (("spread of", np.nanstd), ("mean of", np.nanmean)):
            yield field, f"{words} {field}", _of(of, odd, field), [_of(of, s, field) for s in others]


def _of(measure: Any, shard: Shard, field: str) -> float:
    with np.errstate(all="ignore"):
        return float(measure(np.asarray(shard.columns[field].values[:MOST_ROWS], np.float64)))


def _over(shard: Shard, one: str, other: str) -> float:
    a, b = (np.asarray(shard.columns[f].values[:MOST_ROWS], np.float64) for f in (one, other))
    with np.errstate(all="ignore"):
        return float(np.nanmedian(np.where(b > 0, a / b, np.nan))) if (b > 0).any() else math.nan


def _numbers(odd: Shard, others: Sequence[Shard]) -> Iterator[str]:
    for name, column in odd.columns.items():
        same = [s.columns.get(name) for s in others]
        if column.kind == "number" and column.values.dtype.kind in "iuf" and column.rows and all(
                c is not None and c.row_shape == column.row_shape and c.kind == "number" and c.rows for c in same):
            yield name


def of_arrays(arrays: Mapping[str, Array]) -> dict[str, Said]:
    """What the arrays without rows of a file say."""
    found = {n: said_of(a) for n, a in arrays.items() if a.ndim == 0 or (a.dtype.kind in "US" and a.ndim == 1)}
    return {n: said for n, said in found.items() if said is not None}
