"""One pass at the speed of memory over all rows of a shard, of which only a sample is looked at in full.

It finds what a sample loses: rows that are not finite, rows far beyond the others, ids beyond a vocabulary, rows that
are one number throughout, and a hash of the inputs of each row, which shows exact copies in files and splits.
"""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.summary import KEYS, MOST_COLUMNS, mixed, row_digests

CHUNK = 2**18
"""Bytes of the widest field that are looked at together: they stay in the processor's cache from step to step."""
LOOP = 2048
"""Numbers over which one loop goes, where a row has fewer."""
HELD = 2**25
"""Bytes of mapped files behind which their memory is given back."""
MOST_POINTED = 256
"""Rows of a field and kind that are added to the sample; a sample shows by itself what more rows have."""
BEYOND = 10.0
"""Times the distance of nearly all values from the middle, from which on a row is added to the sample."""
NEARLY = 0.98
SOME = 4000
"""Rows of the sample whose middle and distances are taken."""
BLANK = 8
"""Numbers of a row from which on it is told that they are all the same."""


@dataclass(frozen=True, eq=False)
class Usual:
    """Between what the values of a field lie by a sample: one number each, or one for each feature."""

    low: Array
    high: Array


def usual_of(column: Column, vocabulary: int | None) -> Usual | None:
    """The range beyond which a row is worth a look; None where no range says anything."""
    values = column.values
    if column.kind != "number" or values.dtype.kind not in "iuf" or not values.size:
        return None
    flat = values.reshape(len(values), -1)
    if values.dtype.kind in "iu":
        single = flat.shape[1] == 1 and column.name != "tokens"
        top = int(values.max()) if single else None if vocabulary is None else max(vocabulary - 1, 0)
        low = int(values.min()) if single else 0
        return None if top is None else Usual(np.asarray(low), np.asarray(top))
    some = flat[:: max(1, len(flat) // SOME)].astype(np.float64)
    by_feature = values.ndim == 2 and 1 < flat.shape[1] <= MOST_COLUMNS
    some = np.where(np.isfinite(some), some, np.nan)
    return Usual(*_reach(some, 0 if by_feature else None))


def ranges_of(flat: Mapping[str, Array], some: int) -> dict[str, Usual]:
    """The same of fields of fractions of a block, all at once: there are many blocks, and often many fields."""
    floats = {n: v for n, v in flat.items() if v.dtype.kind == "f" and v.shape[1] <= MOST_COLUMNS}
    if not floats:
        return {}
    table = np.concatenate([v[:: max(1, len(v) // some)].astype(np.float64) for v in floats.values()], axis=1)
    table = np.where(np.isfinite(table), table, np.nan)
    low, high = _reach(table, 0)
    ends = np.cumsum([v.shape[1] for v in floats.values()])[:-1]
    made = zip(floats, np.split(low, ends), np.split(high, ends), strict=True)
    return {n: Usual(a, b) if len(a) > 1 else Usual(a[0], b[0]) for n, a, b in made}


def _reach(some: Array, axis: int | None) -> tuple[Array, Array]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a feature of NaN alone has no middle
        if np.isfinite(some).all():
            middle = _quantile(some, 0.5, axis)
            inner = _quantile(np.abs(some - middle), NEARLY, axis)
        else:
            middle = np.nan_to_num(np.nanmedian(some, axis=axis))
            inner = np.nan_to_num(np.nanquantile(np.abs(some - middle), NEARLY, axis=axis))
        reach = np.where(inner > 0, BEYOND * inner, np.inf)
    return np.asarray(middle - reach), np.asarray(middle + reach)


def _quantile(values: Array, share: float, axis: int | None) -> Array:
    """The value at that place of the order, without what numpy does for the places between two values."""
    count = values.size if axis is None else len(values)
    at = int(share * (count - 1))
    return np.asarray(np.partition(values.reshape(-1) if axis is None else values, at, axis=0)[at])


@dataclass
class FieldWatch:
    """What the pass found in one field so far."""

    usual: Usual | None
    far: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    far_count: int = 0
    bad_count: int = 0
    blank: list[Array] = field(default_factory=list)

    def take(self, start: int, flat: Array) -> None:
        """Takes a chunk, shape (rows, numbers of a row), which begins at row `start`."""
        kind = flat.dtype.kind
        if kind not in "iuf":
            return
        if flat.shape[1] >= BLANK:
            self._blank(start, flat)
        whole = self.bad_count <= MOST_POINTED
        if kind == "f" or (self.usual is not None and self.far_count <= MOST_POINTED):
            low, high = _ends(flat, self.usual)
            if kind == "f" and not (np.isfinite(low).all() and np.isfinite(high).all()):
                if whole:
                    self._bad(start, flat)
                low, high = np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0)
            self._far(start, flat, low, high)

    def _bad(self, start: int, flat: Array) -> None:
        rows = np.flatnonzero(~np.isfinite(flat).all(axis=1))
        self.bad_count += len(rows)
        self.bad += (start + rows[: MOST_POINTED - len(self.bad)]).tolist()

    def _far(self, start: int, flat: Array, low: Array, high: Array) -> None:
        if self.usual is None or self.far_count > MOST_POINTED or not (
                (low < self.usual.low).any() or (high > self.usual.high).any()):
            return
        beyond = (flat < self.usual.low) | (flat > self.usual.high)
        rows = np.flatnonzero(beyond.any(axis=1))
        self.far_count += len(rows)
        self.far += (start + rows[: MOST_POINTED - len(self.far)]).tolist()

    def _blank(self, start: int, flat: Array) -> None:
        first = flat[:, 0]
        same = first == flat[:, -1]
        same &= first == flat[:, flat.shape[1] // 2]
        rows = np.flatnonzero(same)
        if len(rows):
            rows = rows[(flat[rows] == flat[rows, :1]).all(axis=1)]
        if len(rows):
            self.blank.append(start + rows)

    def seen(self) -> tuple[int, int]:
        """How many rows it pointed at so far, of either kind: what `since` is asked with."""
        return len(self.bad), len(self.far)

    def since(self, seen: tuple[int, int]) -> list[int]:
        """The rows that it pointed at since then."""
        return self.bad[seen[0]:] + self.far[seen[1]:]

    @property
    def pointed(self) -> list[int]:
        """The rows that are added to a sample: of those far out only where they are few, as a tail is told by all."""
        return self.bad + (self.far if self.far_count <= MOST_POINTED else [])


def _ends(flat: Array, usual: Usual | None) -> tuple[Array, Array]:
    """The smallest and largest values of a chunk; NaN where one is NaN. By feature where the range is one of each."""
    if usual is not None and usual.low.ndim:
        # rows side by side: the inner loop over features is as long as the processor likes it
        beside = LOOP // flat.shape[1]
        some = len(flat) // beside * beside
        if flat.flags.c_contiguous and some == len(flat) and beside > 1:
            flat = flat.reshape(-1, beside * flat.shape[1])
        low, high = flat.min(axis=0), flat.max(axis=0)
        width = len(usual.low)
        return low.reshape(-1, width).min(axis=0), high.reshape(-1, width).max(axis=0)
    return np.asarray(flat.min()), np.asarray(flat.max())


@dataclass
class Watch:
    """The pass over one shard. `signed`: the fields whose hash is taken, in their order."""

    fields: Mapping[str, FieldWatch]
    signed: Sequence[str]
    digests: list[Array] = field(default_factory=list)
    rows: int = 0

    def take(self, chunk: Mapping[str, Array]) -> None:
        """Takes the next rows of all fields, each of shape (rows, numbers of a row)."""
        count = len(next(iter(chunk.values())))
        for name, watch in self.fields.items():
            watch.take(self.rows, chunk[name])
        if self.signed:
            self.digests.append(hashed([chunk[name] for name in self.signed]))
        self.rows += count

    @property
    def pointed(self) -> Array:
        """int64: the rows that are added to the sample."""
        return np.unique(np.array([r for w in self.fields.values() for r in w.pointed], np.int64))

    @property
    def blank(self) -> dict[str, Array]:
        """By field, the rows that are one number throughout."""
        return {n: np.concatenate(w.blank) for n, w in self.fields.items() if w.blank}


def hashed(fields: Sequence[Array]) -> Array:
    """uint64 shape (rows,): a hash of all fields of each row. Single numbers are taken together: they are many."""
    out = np.zeros(len(fields[0]), np.uint64)
    for place, flat in enumerate(fields):
        if flat.shape[1] == 1 and flat.dtype.itemsize in (4, 8):
            words = np.ascontiguousarray(flat[:, 0]).view(f"u{flat.dtype.itemsize}").astype(np.uint64)
            out += words * KEYS[place % len(KEYS)]
        else:
            out += row_digests(flat) * KEYS[place % len(KEYS)]
    return mixed(out)


def chunks_of(columns: Mapping[str, Column], bounds: Bounds) -> Iterator[dict[str, Array]]:
    """All rows of fields of numbers, a chunk after the other, as long as there is time; their memory is given back."""
    arrays = {n: c.values for n, c in columns.items()}
    total = min(map(len, arrays.values()))
    widest = max(max(1, a[:1].nbytes) for a in arrays.values())
    step = max(1, CHUNK // widest)
    held = 0
    for start in range(0, total, step):
        if bounds.over:
            return
        yield {n: _flat(a[start : start + step]) for n, a in arrays.items()}
        held += step * sum(a[:1].nbytes for a in arrays.values())
        if held > HELD:
            give_back(arrays.values())
            held = 0
    give_back(arrays.values())


def _flat(rows: Array) -> Array:
    return np.asarray(rows).reshape(len(rows), -1)


def give_back(arrays: Iterable[Array]) -> None:
    """The memory of mapped files that was read: the file is there to be read again."""
    for array in arrays:
        mapped = getattr(array, "_mmap", None)
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
