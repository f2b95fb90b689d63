"""Statistics of one field of one shard, in one pass over blocks that fit the processor's cache."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traindx_tools.on_data.column import Array, Column

BLOCK = 2**17
"""Values looked at together: 1 MiB as float64."""
MOST_COLUMNS = 256
"""Features of a row that are also looked at one by one: a table has fewer, a picture more."""
MOST_DISTINCT = 4096
"""Distinct integers that a histogram holds; more are no classes."""
SAMPLE = 50_000
"""Values from which quantiles are taken."""
MOST_NAMED = 20
"""Rows that are named of those with NaN or infinity."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What one pass tells of a field. Of a text the lengths are summarised, of a sequence its items."""

    rows: int
    count: int
    """Values, over all axes."""
    dtype: str
    shape: tuple[int, ...]
    """Of one row."""
    nan: int
    inf: int
    bad_rows: Array
    """int64: the first rows with NaN or infinity, at most `MOST_NAMED`."""
    bad_row_count: int
    low: float
    high: float
    mean: float
    std: float
    """Of the finite values; NaN where there are none."""
    column_means: Array | None
    column_stds: Array | None
    """float64 shape (features,): of the finite values, where a row has at most `MOST_COLUMNS` features."""
    histogram: tuple[Array, Array] | None
    """Sorted distinct integers and their counts, where there are at most `MOST_DISTINCT`."""
    sample: Array
    """float64: at most `SAMPLE` finite values, evenly spaced over the rows, sorted."""
    column: Column

    @property
    def finite_share(self) -> float:
        """Share of the values that are neither NaN nor infinite."""
        return 1.0 - (self.nan + self.inf) / max(1, self.count)

    @cached_property
    def digests(self) -> Array:
        """uint64 shape (rows,): a hash of each row. Made when it is asked for: not every field is compared by rows."""
        if self.column.digests is not None:
            return self.column.digests
        if self.column.offsets is not None:
            return sequence_digests(self.column.values, self.column.offsets)
        flat = self.column.values.reshape(self.rows, -1)
        step = max(1, BLOCK // max(1, flat.shape[1]))
        parts = [row_digests(flat[start : start + step]) for start in range(0, self.rows, step)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    @cached_property
    def distinct_rows(self) -> int:
        """Distinct rows, by their hashes."""
        return len(distinct(self.digests))

    @cached_property
    def order(self) -> float:
        """Correlation of a scalar field with the row number, -1 to 1; 0 where it has none."""
        values = self.column.values if self.column.kind == "number" else self.column.lengths
        if (
            values.ndim != 1
            or len(values) < 8
            or values.dtype.kind not in "iuf"
            or self.std == 0
            or self.nan + self.inf
        ):
            return 0.0
        return float(np.corrcoef(np.arange(len(values)), values.astype(np.float64))[0, 1])

    def quantile(self, q: float) -> float:
        """A quantile of the finite values, from the sample."""
        return float(np.quantile(self.sample, q)) if len(self.sample) else math.nan

    @property
    def constant(self) -> bool:
        """Whether all values are the same finite number."""
        return self.rows > 1 and self.low == self.high and not self.nan and not self.inf


@dataclass
class _Running:
    """Sums over the blocks so far."""

    nan: int = 0
    inf: int = 0
    finite: int = 0
    total: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, block: Array, shift: float) -> bool:
        """Takes a float64 block; returns whether all of it is finite, which its sum tells at no extra cost."""
        moved = block.reshape(-1) - shift
        total = float(moved.sum())
        if not math.isfinite(total):
            self.nan += int(np.isnan(moved).sum())
            self.inf += int(np.isinf(moved).sum())
            whole, moved = not (self.nan + self.inf), moved[np.isfinite(moved)]
            total = float(moved.sum())
        else:
            whole = True
        if len(moved):
            self.finite += len(moved)
            self.total += total
            self.squares += float(np.dot(moved, moved))
            self.low = min(self.low, float(moved.min()) + shift)
            self.high = max(self.high, float(moved.max()) + shift)
        return whole

    def mean(self, shift: float) -> float:
        return shift + self.total / self.finite if self.finite else math.nan

    @property
    def std(self) -> float:
        if not self.finite:
            return math.nan
        return math.sqrt(max(0.0, self.squares / self.finite - (self.total / self.finite) ** 2))


def summarised(column: Column) -> Summary:
    """The statistics of a field. Reads each value once; memory is bounded by a block."""
    values = column.values
    flat = values.reshape(len(values), -1) if values.size else np.zeros((0, 1), values.dtype)
    width = max(1, flat.shape[1])
    per_row = 2 <= width <= MOST_COLUMNS and column.kind == "number"
    shift = _shift(flat)
    running, bad = _Running(), []
    sums = np.zeros((3, width)) if per_row else None
    step = max(1, BLOCK // width)
    for start in range(0, len(flat), step):
        block = flat[start : start + step].astype(np.float64)
        whole = running.add(block, shift)
        if not whole:
            bad.append(start + np.flatnonzero(~np.isfinite(block).all(axis=1)))
        if sums is not None:
            moved = block - shift if whole else np.where(np.isfinite(block), block - shift, 0.0)
            sums[0] += len(block) if whole else np.isfinite(block).sum(axis=0)
            sums[1] += moved.sum(axis=0)
            sums[2] += np.einsum("ij,ij->j", moved, moved)
    rows = np.concatenate(bad) if bad else np.empty(0, np.int64)
    means, stds = _by_column(sums, shift) if sums is not None else (None, None)
    return Summary(
        rows=column.rows,
        count=int(values.size),
        dtype=str(values.dtype) if column.kind != "text" else "text",
        shape=column.row_shape,
        nan=running.nan,
        inf=running.inf,
        bad_rows=rows[:MOST_NAMED],
        bad_row_count=len(rows),
        low=running.low,
        high=running.high,
        mean=running.mean(shift),
        std=running.std,
        column_means=means,
        column_stds=stds,
        histogram=_histogram(column),
        sample=_sample(flat),
        column=column,
    )


def _shift(flat: Array) -> float:
    """A value near the mean: sums of squares around it lose no digits."""
    if not flat.size:
        return 0.0
    some = flat[:: max(1, len(flat) // 64)][:64].astype(np.float64)
    some = some[np.isfinite(some)]
    return float(np.median(some)) if len(some) else 0.0


def _by_column(sums: Array, shift: float) -> tuple[Array, Array]:
    count = np.maximum(sums[0], 1.0)
    mean = sums[1] / count
    return mean + shift, np.sqrt(np.maximum(0.0, sums[2] / count - mean * mean))


def _sample(flat: Array) -> Array:
    values = flat.reshape(-1) if flat.flags.c_contiguous else flat[:: max(1, len(flat) // 2000)].reshape(-1)
    # A step that shares no factor with the width visits every feature.
    step = max(1, len(values) // SAMPLE)
    while step > 1 and math.gcd(step, max(1, flat.shape[1])) > 1:
        step += 1
    some = values[::step][:SAMPLE].astype(np.float64)
    return np.sort(some[np.isfinite(some)])


def _histogram(column: Column) -> tuple[Array, Array] | None:
    if not column.is_integer or not column.values.size:
        return None
    values = column.values.reshape(-1)
    if values.dtype.kind == "b" or values.dtype.itemsize <= 2:  # the range of int16 is no int16
        values = values.astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if high >= 2**63:  # hashes, no classes
        return None
    if high - low > 2**22:
        found = distinct(values[: 4 * MOST_DISTINCT])
        return None if len(found) > MOST_DISTINCT else _limited(*np.unique(values, return_counts=True))
    counts = np.bincount((values - low).astype(np.int64))
    seen = np.flatnonzero(counts)
    return _limited(seen + low, counts[seen])


def _limited(values: Array, counts: Array) -> tuple[Array, Array] | None:
    return (values.astype(np.int64), counts) if len(values) <= MOST_DISTINCT else None


def distinct(values: Array) -> Array:
    """The distinct values, sorted. By sorting: several times faster than the table of hashes of numpy 2.3 and later."""
    ordered = np.sort(values, axis=None)
    if not len(ordered):
        return ordered
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def contained(values: Array, ordered: Array) -> Array:
    """bool shape of `values`: which of them are among `ordered`, sorted distinct values."""
    if not len(ordered):
        return np.zeros(values.shape, bool)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values)


KEYS = np.random.default_rng(0x7261696E).integers(1, 2**63, 4096, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def row_digests(rows: Array) -> Array:
    """uint64 shape (rows,): a multilinear hash of the bytes of each row, the same in every process.

    Two given rows collide with a chance of about 2**-60 (Thorup, multilinear hashing over 64-bit words).
    """
    raw = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
    if raw.shape[1] % 8:
        raw = np.pad(raw, ((0, 0), (0, 8 - raw.shape[1] % 8)))
    words = raw.view(np.uint64)
    out = np.full(len(rows), words.shape[1], np.uint64)
    for start in range(0, words.shape[1], len(KEYS)):
        part = words[:, start : start + len(KEYS)]
        out = mixed(out + np.einsum("ij,j->i", part, KEYS[: part.shape[1]]))  # no product in memory
    return out


def sequence_digests(items: Array, offsets: Array) -> Array:
    """uint64 shape (rows,): a hash of the items of each row, which may have any number of them."""
    if not len(items):
        return np.diff(offsets).astype(np.uint64)
    at = np.arange(len(items)) - np.repeat(offsets[:-1], np.diff(offsets))
    hashed = mixed(items.astype(np.int64).view(np.uint64) + KEYS[at % len(KEYS)]) * KEYS[(at + 1) % len(KEYS)]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashed, dtype=np.uint64)])
    return mixed(sums[offsets[1:]] - sums[offsets[:-1]] + np.diff(offsets).astype(np.uint64))


def mixed(words: Array) -> Array:
    """Every bit of each uint64 word spread over all bits (the finaliser of MurmurHash3)."""
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(words ^ (words >> np.uint64(33)))
