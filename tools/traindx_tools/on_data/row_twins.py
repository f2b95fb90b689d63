"""Rows that are one another after a rearrangement: two sides exchanged, signs turned, a picture mirrored or turned.

In tables no name says which columns are the sides: columns that share their values are candidates, and a row whose
values are those of another row in other places is its twin. What the twins have in common is the rearrangement. Signs
count as a part of it. Arrays are compared under the turns and mirrors of their last two axes of space, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_row_id, is_time, splits_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import distinct, mixed
from traindx_tools.on_data.table import DataSet

FEWEST = 20
"""Pairs of twins."""
MANY_KINDS = 20
"""Distinct values of a column whose values tell rows apart."""
SHARED = 0.3
"""Of the distinct values of two columns that may be two sides of one thing."""
BY_CHANCE = 0.05
"""Of the twins, the most that are still there once one column is shuffled."""
OBEY = 0.8
"""Of the twins, the share that one rearrangement explains."""
EACH_FIELD = 0.97
"""The same of one field, below which it does not belong to the rearrangement."""
MOST_ROWS, MOST_COLUMNS = 200_000, 64
MOST_VALUES, SAMPLE = 2**23, 200
LARGEST_GROUP = 16


@dataclass(frozen=True, eq=False)
class Twins:
    """Rows `one` and `other` of all files together, which `operation` makes of each other; `fields` are compared."""

    operation: str
    fields: tuple[str, ...]
    one: Array
    other: Array
    exact: Array
    """uint64 of each row of all files: equal where rows are equal in these fields."""
    ids_alone: bool = False
    """Whether nothing but the two ends of a pair of ids tells rows apart."""

    def equal_rows(self, at: int, sizes: Sequence[int], trained: Sequence[bool]) -> int:
        """Rows of file `at` that are equal to a training row, where they stand."""
        parts = np.split(self.exact, np.cumsum(sizes)[:-1])
        known = [p for p, t in zip(parts, trained, strict=True) if t]
        return int(np.isin(parts[at], np.concatenate(known)).sum()) if known else 0


def twins_of(data: DataSet) -> tuple[Twins, ...]:
    """Of the columns of a table together, and of each field of arrays; found once for a set."""
    if "twins" not in data.memo:
        data.memo["twins"] = tuple(_twins([s for s in data.shards if s.columns and s.rows]))
    found: tuple[Twins, ...] = data.memo["twins"]
    return found


def _twins(group: Sequence[Shard]) -> Iterator[Twins]:
    if not group or sum(s.total for s in group) > MOST_ROWS:  # of a sample hardly one twin's other is in it
        return
    names = [n for n in group[0].columns if all(n in s.columns and s.columns[n].rows == s.rows for s in group)]
    found = _of_table([f for n in names for f in _flat(n, [s.columns[n] for s in group])])
    if found is not None:
        yield found
    for name in names:
        yield from _of_arrays([s.columns[name] for s in group], name)


@dataclass(frozen=True, eq=False)
class _Field:
    name: str
    keys: Array
    """uint64: of numbers the value without its sign."""
    values: Array | None
    kinds: Array


def _field(name: str, columns: Sequence[Column]) -> _Field | None:
    """A column whose values tell rows apart; None of numbers of rows, times and everything else."""
    if is_time(name) or any(c.missing is not None for c in columns) or any(map(is_row_id, columns)):
        return None
    if all(c.kind == "text" and c.digests is not None and c.texts for c in columns):
        if any(splits_of(c) is not None for c in columns):
            return None
        keys = np.concatenate([c.digests for c in columns if c.digests is not None])
        values = None
    elif all(c.kind == "number" and c.values.dtype.kind in "iuf" for c in columns):
        values = np.concatenate([np.asarray(c.values, np.float64) for c in columns])
        keys = mixed((np.abs(values) + 0.0).view(np.uint64))
    else:
        return None
    kinds = distinct(keys)
    return _Field(name, keys, values, kinds) if len(kinds) >= MANY_KINDS else None


def _flat(name: str, columns: Sequence[Column]) -> Iterator[tuple[str, Sequence[Column]]]:
    """A column, or each feature of a short array of them."""
    shape = columns[0].row_shape
    if not any(c.row_shape for c in columns):
        yield name, columns
    elif len(shape) == 1 and shape[0] <= MOST_COLUMNS and all(c.row_shape == shape and c.kind == "number"
                                                              for c in columns):
        for k in range(shape[0]):
            yield f"{name}[{k}]", [replace(c, values=c.by_feature[k]) for c in columns]


def _of_table(columns: Sequence[tuple[str, Sequence[Column]]]) -> Twins | None:
    fields = [f for n, c in columns[:MOST_COLUMNS] if (f := _field(n, c)) is not None]
    if not fields:
        return None
    sides = _sides(fields)
    turned = [f for f in fields if f.values is not None and (f.values < 0).mean() > 0.02 < (f.values > 0).mean()]
    if all(len(s) == 1 for s in sides) and not turned:
        return None
    best: tuple[Array, Array] | None = None
    used: Sequence[Sequence[_Field]] = ()
    by_side = {id(s): pair for s, *pair in zip(sides, _hashes(sides, False), _hashes(sides, True), strict=True)}
    whole = [np.sum([pair[k] for pair in by_side.values()], axis=0, dtype=np.uint64) for k in (0, 1)]
    for some in _choices(sides):
        without = [by_side[id(s)] for s in sides if not any(s is o for o in some)]
        loose, exact = (np.asarray(total - sum((pair[k] for pair in without), np.uint64(0)))
                        for k, total in enumerate(whole))
        pairs = _matched(loose, exact)
        if len(pairs[0]) >= FEWEST and (best is None or len(pairs[0]) > 1.5 * len(best[0])):
            best, used = pairs, some
    if best is None or _by_chance(used) > BY_CHANCE * len(best[0]):
        return None
    return _explained(used, *best)


def _sides(fields: Sequence[_Field]) -> list[list[_Field]]:
    """Fields that share their values stand together."""
    sides: list[list[_Field]] = []
    for field in fields:
        for side in sides:
            other = side[0]
            if (other.values is None) == (field.values is None) and _share_values(other.kinds, field.kinds):
                side.append(field)
                break
        else:
            sides.append([field])
    return sides


def _share_values(one: Array, other: Array) -> bool:
    """Whether two sorted sets of values share enough; a sample says first whether it is worth while."""
    few, many = sorted((one, other), key=len)
    some = few[::max(1, len(few) // SAMPLE)]
    if np.isin(some, many, assume_unique=True, kind="sort").mean() < SHARED / 2:
        return False
    return len(np.intersect1d(few, many, assume_unique=True)) >= SHARED * len(few)


def _choices(sides: list[list[_Field]]) -> Iterator[list[list[_Field]]]:
    """All fields, all but one that stands alone (the target may be one), and those alone that have sides."""
    yield sides
    alone = [k for k, s in enumerate(sides) if len(s) == 1]
    if len(sides) > 1:
        for k in alone[:16]:
            yield [s for i, s in enumerate(sides) if i != k]
    paired = [s for s in sides if len(s) > 1]
    if paired and len(alone) > 1:
        yield paired


def _hashes(sides: Sequence[Sequence[_Field]], ordered: bool) -> list[Array]:
    """uint64 of each row, by side: of the values whatever their places among the sides, or (`ordered`) in their places.
    Their sum is that of the row."""
    return [_of_side(side, at, ordered) for at, side in enumerate(sides)]


def _of_side(side: Sequence[_Field], at: int, ordered: bool) -> Array:
    total = np.zeros(len(side[0].keys), np.uint64)
    for k, field in enumerate(side):
        total += mixed(field.keys + np.uint64(7919 * (k + 1) if ordered else 0))
        if ordered and field.values is not None:
            total += mixed((field.values < 0).astype(np.uint64) + np.uint64(31 * k + 5))
    return mixed(total + np.uint64(at + 1))


def _pairs(sides: Sequence[Sequence[_Field]]) -> tuple[Array, Array]:
    return _matched(_of_row(sides, ordered=False), _of_row(sides, ordered=True))


def _of_row(sides: Sequence[Sequence[_Field]], ordered: bool) -> Array:
    return np.asarray(np.sum(_hashes(sides, ordered), axis=0, dtype=np.uint64))


def _matched(loose: Array, exact: Array) -> tuple[Array, Array]:
    """Rows of the same loose hash and another exact one: the first of each group with each other one of it."""
    order = np.argsort(loose, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], loose[order][1:] != loose[order][:-1]]))
    sizes = np.diff(np.concatenate([starts, [len(order)]]))
    first = np.repeat(order[starts], sizes)
    large = np.repeat(sizes > LARGEST_GROUP, sizes)
    kept = (exact[first] != exact[order]) & ~large
    return first[kept], order[kept]


def _by_chance(sides: Sequence[Sequence[_Field]]) -> int:
    """Twins that are left once one column is shuffled: rows whose values are alike without being one another's."""
    rng = np.random.default_rng(0)
    first = max(sides, key=len)
    mix = rng.permutation(len(first[0].keys))
    shuffled = _Field(first[0].name, first[0].keys[mix], None if first[0].values is None else first[0].values[mix],
                      first[0].kinds)
    other = [[shuffled, *s[1:]] if s is first else s for s in sides]
    return len(_pairs(other)[0])


def _explained(sides: Sequence[Sequence[_Field]], one: Array, other: Array) -> Twins | None:
    """The twins that the commonest rearrangement makes: for each field the one whose value it takes, and its sign.

    A field that goes along in most twins and not in all is none of what the twins are told by: it is judged by them.
    """
    told = [_told(f, side, one, other) for side in sides for f in side]
    kept = [t for t in told if t.obeys.mean() >= EACH_FIELD]
    exchanged = [(t.field.name, t.source.name) for t in kept if t.source is not t.field]
    turned = [t.field.name for t in kept if t.turned]
    if not (exchanged or turned):
        return None
    obey = np.all([t.obeys for t in kept], axis=0)
    if obey.mean() < OBEY or obey.sum() < FEWEST:
        return None
    pairs = [f"{a} and {b}" for a, b in exchanged if a < b] or [f"{a} for {b}" for a, b in exchanged]
    said = [f"{', '.join(pairs[:4])} exchanged"] if pairs else []
    said += [f"the sign of {', '.join(turned[:4])} turned"] if turned else []
    fields = [t.field for t in kept]
    alone = len(fields) == 2 and len(exchanged) == 2 and fields[0].values is None
    return Twins(" and ".join(said), tuple(f.name for f in fields), one[obey], other[obey],
                 _of_row([[f] for f in fields], ordered=True), alone)


@dataclass(frozen=True, eq=False)
class _Told:
    """The field whose value `field` takes in a twin, whether its sign turns, and bool shape (pairs,): where it does."""

    field: _Field
    source: _Field
    turned: bool
    obeys: Array


def _told(field: _Field, side: Sequence[_Field], one: Array, other: Array) -> _Told:
    equal = [float((f.keys[one] == field.keys[other]).mean()) for f in side]
    source = side[max(range(len(side)), key=lambda k: (equal[k], side[k] is field))]
    if field.values is None or source.values is None:
        return _Told(field, source, False, source.keys[one] == field.keys[other])
    a, b = source.values[one], field.values[other]
    turned = bool((a != 0).any()) and float((a == -b)[a != 0].mean()) > 0.5
    return _Told(field, source, turned, (a == -b) if turned else (a == b))


def _of_arrays(columns: Sequence[Column], name: str) -> Iterator[Twins]:
    """Twins of each turn and mirror of pictures, boards and maps, and of series turned around."""
    shape = columns[0].row_shape
    if not shape or any(c.kind != "number" or c.row_shape != shape for c in columns) or int(np.prod(shape)) < 8:
        return
    if sum(c.values.size for c in columns) > MOST_VALUES or any(c.values.dtype.kind not in "iufb" for c in columns):
        return
    values = np.concatenate([np.asarray(c.values, np.float32) for c in columns])
    if not np.isfinite(values).all():
        return
    keys = mixed((values + np.float32(0)).view(np.uint32).astype(np.uint64)).reshape(len(values), -1)
    places = mixed(np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)).reshape(shape)
    ways = dict(_ways(places))
    hashes = {k: (keys * w.reshape(-1)).sum(axis=1, dtype=np.uint64) for k, w in ways.items()}
    same = hashes.pop("")
    order = np.argsort(same, kind="stable")
    for way, moved in hashes.items():
        at = np.minimum(np.searchsorted(same[order], moved), len(order) - 1)
        hit = (same[order][at] == moved) & (moved != same)
        one, other = np.flatnonzero(hit), order[at[hit]]
        once = one < other if way in _INVOLUTIONS else np.ones(len(one), bool)
        if once.sum() >= FEWEST and np.bincount(other[once]).max() <= LARGEST_GROUP:
            yield Twins(f"{name} {way}", (name,), one[once], other[once], same)


_INVOLUTIONS = frozenset({"mirrored left to right", "mirrored top to bottom", "turned by 180 degrees",
                          "transposed", "transposed the other way", "turned around"})


def _ways(places: Array) -> Iterator[tuple[str, Array]]:
    """The places of a row's values after each way to turn and mirror it; "" as they are."""
    yield "", places
    if places.ndim == 1:
        yield "turned around", places[::-1]
        return
    a, b = (0, 1) if places.ndim == 2 or places.shape[2] <= 4 else (places.ndim - 2, places.ndim - 1)
    if min(places.shape[a], places.shape[b]) < 2:
        return
    yield "mirrored left to right", np.flip(places, b)
    yield "mirrored top to bottom", np.flip(places, a)
    yield "turned by 180 degrees", np.flip(places, (a, b))
    if places.shape[a] == places.shape[b]:
        yield "transposed", np.swapaxes(places, a, b)
        yield "transposed the other way", np.flip(np.swapaxes(places, a, b), (a, b))
        yield "turned by 90 degrees", np.rot90(places, 1, (a, b))
        yield "turned by 270 degrees", np.rot90(places, 3, (a, b))
