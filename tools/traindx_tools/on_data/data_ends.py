"""Where the data of each row end: items of a sequence, the last place of an array that is no filler, bytes, characters.

Beside it a number of the row (a length, frames, tokens, a duration) may say the same, or a constant multiple of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.shard import Shard

FEWEST = 30
"""Rows of a part whose data end before the array does."""
KINDS = 8
"""Different ends in a part."""
AGREE = 0.95
"""Share of the rows of every other part, and of the odd one after its own factor, that the relation holds in."""
BROKEN = 0.1
"""Share of the rows of the odd part in which the others' relation may hold."""
SLACK = 0.01
"""Of the end, beside one place, that a number may be off: a last window that is not full."""
APART = 1.05
"""How many times another factor is the others' at least."""
PLACES = 8
MOST_ROWS = 4000
MOST_VALUES = 2**23
MOST_STATED, MOST_ENDS = 24, 16
FILLED = 0.1
"""Share of the rows that end with the filler."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Where the data of the rows of a set end: int64 shape (rows,), -1 where that is not seen."""

    field: str
    told: str
    at: Array


@dataclass(frozen=True)
class Relation:
    """n = factor * end, nearly; or n = end + offset, exactly."""

    factor: float
    offset: int = 0
    exact: bool = False

    def holds(self, stated: Array, ends: Array) -> Array:
        """bool shape (rows,)."""
        if self.exact:
            return np.asarray(stated == ends + self.offset)
        return np.asarray(np.abs(stated / self.factor - ends) <= 1.0 + SLACK * ends)


@dataclass(frozen=True, eq=False)
class Apart:
    """A part in which a stated number goes along with the ends otherwise."""

    stated: str
    ends: Ends
    part: int
    usual: Relation
    own: Relation
    rows: int
    holds: float


def rows_of(group: Sequence[Shard]) -> list[Array]:
    """The rows of each shard that are looked at."""
    return [np.arange(0, s.rows, max(1, -(-s.rows // MOST_ROWS))) for s in group]


def stated_numbers(group: Sequence[Shard], rows: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    """Positive numbers of several values, one a row."""
    made = 0
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        if not all(c is not None and c.kind == "number" and c.values.dtype.kind in "iuf" and not c.row_shape
                   and c.rows == s.rows for c, s in zip(columns, group, strict=True)):
            continue
        values = np.concatenate([np.asarray(c.values, np.float64)[r] for c, r in zip(columns, rows, strict=True)
                                 if c is not None])
        if np.isfinite(values).all() and (values > 0).mean() > 0.9 and len(np.unique(values)) >= KINDS:
            made += 1
            yield name, values
        if made == MOST_STATED:
            return


def ends_of(group: Sequence[Shard], rows: Sequence[Array]) -> Iterator[Ends]:
    """Of each field that has ends."""
    made = 0
    for name in dict.fromkeys((*group[0].columns, *group[0].sizes)):
        found = _of_field(group, rows, name)
        if found is not None:
            made += 1
            yield found
        if made == MOST_ENDS:
            return


def _of_field(group: Sequence[Shard], rows: Sequence[Array], name: str) -> Ends | None:
    sizes = [s.sizes.get(name) for s in group]
    if all(z is not None and len(z) == s.rows for z, s in zip(sizes, group, strict=True)):
        return Ends(name, f"the size of {name}", np.concatenate([z[r] for z, r in zip(sizes, rows, strict=True)
                                                                 if z is not None]))
    columns = [c for s in group if (c := s.columns.get(name)) is not None and c.rows == s.rows]
    if len(columns) < len(group):
        return None
    if all(c.kind == "text" and len(c.texts) == c.rows for c in columns):
        return Ends(name, f"the characters of {name}", _joined([c.values for c in columns], rows))
    if all(c.kind == "sequence" for c in columns):
        return Ends(name, f"the items of {name}", _joined([c.lengths for c in columns], rows))
    if all(c.kind == "number" and c.row_shape and c.row_shape[0] >= PLACES for c in columns):
        return _of_arrays(name, columns, rows)
    return None


def _joined(values: Sequence[Array], rows: Sequence[Array]) -> Array:
    return np.concatenate([np.asarray(v)[r] for v, r in zip(values, rows, strict=True)]).astype(np.int64)


def _of_arrays(name: str, columns: Sequence[Column], rows: Sequence[Array]) -> Ends | None:
    """The last place, along the first axis of a row, that is not all filler; -1 of full rows: they may be cut."""
    if sum(len(r) * int(np.prod(c.row_shape)) for c, r in zip(columns, rows, strict=True)) > MOST_VALUES:
        return None
    parts = [np.asarray(c.values)[r].reshape(len(r), c.row_shape[0], -1) for c, r in zip(columns, rows, strict=True)]
    last = np.concatenate([p[:, -1] for p in parts]) if len({p.shape[2] for p in parts}) == 1 else np.empty((0, 1))
    one = last[(last == last[:, :1]).all(axis=1), 0] if last.size else last[:, 0]
    if len(one) < FILLED * max(1, len(last)) or not len(one):
        return None
    kinds, counts = np.unique(one, return_counts=True)
    filler = kinds[counts.argmax()]
    if counts.max() < FILLED * len(last):
        return None
    out = []
    for part in parts:
        filled = (part[:, ::-1] == filler).all(axis=2)
        ends = part.shape[1] - np.logical_and.accumulate(filled, axis=1).sum(axis=1)
        out.append(np.where((ends < part.shape[1]) & (ends > 0), ends, -1))
    return Ends(name, f"the last place of {name} before its padding ({filler:g})", np.concatenate(out).astype(np.int64))


def apart(name: str, stated: Array, ends: Ends, cut: Cut, rows: Sequence[Array]) -> Apart | None:
    """The one part of a cut whose relation is another one than that of all others."""
    member = np.concatenate([m[r] for m, r in zip(cut.member, rows, strict=True)])
    seen = (ends.at > 0) & (stated > 0)
    parts = [np.flatnonzero((member == p) & seen) for p in range(len(cut.names))]
    if len(parts) < 3 or any(len(p) < FEWEST for p in parts):
        return None
    usual = _usual(stated, ends.at, parts)
    if usual is None:
        return None
    holds = [float(usual.holds(stated[p], ends.at[p]).mean()) for p in parts]
    odd = int(np.argmin(holds))
    if sum(h >= AGREE for h in holds) < len(parts) - 1 or holds[odd] > BROKEN:
        return None
    mine = parts[odd]
    if min(len(np.unique(ends.at[p])) for p in parts) < KINDS:
        return None
    own = _own(stated[mine], ends.at[mine], usual)
    return Apart(name, ends, odd, usual, own, len(mine), holds[odd]) if own is not None else None


def _usual(stated: Array, ends: Array, parts: Sequence[Array]) -> Relation | None:
    """The relation of the typical part: an exact offset first, since a factor near 1 would hide it."""
    offsets = [_mode(stated[p] - ends[p]) for p in parts]
    exact = np.array([o for o, share in offsets if share >= AGREE and o == int(o)])
    if len(exact) >= len(parts) - 1 and len(np.unique(exact)) < len(exact):
        return Relation(1.0, int(_mode(exact)[0]), exact=True)
    return Relation(float(np.median([np.median(stated[p] / ends[p]) for p in parts])))


def _mode(values: Array) -> tuple[float, float]:
    kinds, counts = np.unique(values, return_counts=True)
    return float(kinds[counts.argmax()]), float(counts.max() / len(values))


def _own(stated: Array, ends: Array, usual: Relation) -> Relation | None:
    """Another factor, or another exact offset, that holds in the odd part."""
    factor = Relation(float(np.median(stated / ends)))
    ratio = factor.factor / usual.factor
    if max(ratio, 1.0 / ratio) >= APART and factor.holds(stated, ends).mean() >= AGREE:
        return factor
    offset, share = _mode(stated - ends)
    exact = usual.exact and share >= AGREE and offset == int(offset)
    return Relation(1.0, int(offset), exact=True) if exact else None
