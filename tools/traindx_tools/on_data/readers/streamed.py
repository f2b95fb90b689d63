"""Large tables that are read once, block by block: a sample of the rows, and what a pass over all of them finds.

Nothing is held but the sample: the first rows of each block, and rows that the pass points at. What lies far out is
told block by block, as a file may drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.shard import Shard, Whole
from traindx_tools.on_data.whole_pass import SOME, FieldWatch, Usual, Watch, ranges_of

SAMPLE = 2**21
"""Values of a set that are looked at, where it has more than are looked at one by one."""
FEWEST_ROWS = 4096
"""Rows of a set, however many fields they have."""
PIECES = 64
"""Blocks of a file that rows are taken from, where it is large enough."""


@dataclass
class Kept:
    """Which rows of each block are kept. `most`: rows of the whole file."""

    most: int
    watch: Watch | None = None
    rows: int = 0
    numbers: list[Array] = field(default_factory=list)
    blocks: list[Array] = field(default_factory=list)

    def begin(self) -> None:
        """Forgets what it took: the file is read from its beginning again."""
        self.watch, self.rows, self.numbers, self.blocks = None, 0, [], []

    def of_block(self, count: int, share: float, numbers: Mapping[str, Array]) -> Array:
        """Takes `count` rows, a `share` of the file, and returns the places of those that are kept, in their order.

        `numbers`: the fields of numbers, shape (rows,) or (rows, numbers of a row).
        """
        flat = {n: v.reshape(len(v), -1) for n, v in numbers.items()}
        if self.watch is None:
            self.watch = Watch({n: FieldWatch(_of_first(v)) for n, v in flat.items()}, signed_alone(flat))
        first = np.arange(min(count, max(1, round(self.most * share))))
        pointed = self._pointed(flat) if flat else np.empty(0, np.int64)
        places = np.unique(np.concatenate([first, pointed]))
        self.numbers.append(self.rows + places)
        self.blocks.append(places < len(first))
        self.rows += count
        return places

    def _pointed(self, flat: Mapping[str, Array]) -> Array:
        """The rows of a block that are not finite or far out; of a field that has many, those up to there."""
        assert self.watch is not None
        ranges = ranges_of(flat, SOME // 8)
        before = {n: w.seen() for n, w in self.watch.fields.items()}
        for name, watch in self.watch.fields.items():
            watch.usual = ranges.get(name, watch.usual)
        self.watch.take({n: flat[n] for n in self.watch.fields})
        new = [r for n, w in self.watch.fields.items() for r in w.since(before[n])]
        return np.array(new, np.int64) - self.rows

    def chosen(self) -> Array:
        """bool, of the rows that were kept: without those far out in fields where many are."""
        in_block, numbers = np.concatenate(self.blocks), np.concatenate(self.numbers)
        return in_block | np.isin(numbers, self.watch.pointed if self.watch is not None else ())

    def whole(self) -> Whole:
        """What the pass found."""
        watch = self.watch
        if watch is None or not watch.fields:
            return Whole(self.rows, {})
        digests = np.concatenate(watch.digests) if watch.digests else None
        return Whole(self.rows, {}, digests, blank=watch.blank, pointed=watch.pointed)


def _of_first(flat: Array) -> Usual | None:
    """The range of whole numbers in the first block: labels beyond it are few, ids are many and left alone."""
    return Usual(flat.min(), flat.max()) if flat.dtype.kind in "iu" and flat.shape[1] == 1 else None


def signed_alone(flat: Mapping[str, Array]) -> Sequence[str]:
    """The fields whose hash tells rows apart, without a look at what they mean: fractions, or arrays of numbers."""
    names = sorted(n for n, v in flat.items() if v.shape[1] >= 4)
    floats = sorted(n for n, v in flat.items() if v.dtype.kind == "f" and v.shape[1] == 1)
    return names or (floats if len(floats) >= 2 else [])


def rows_kept(bounds: Bounds, columns: int) -> int:
    """Rows of a file that are looked at: its share of the set's values."""
    return max(PIECES, int(bounds.share * max(SAMPLE // max(1, columns), FEWEST_ROWS)))


def as_sample(shard: Shard, numbers: Array, total: int, whole: Whole) -> Shard:
    """A shard of rows that were kept, with their numbers and what the pass over all rows found."""
    note = said_of(len(numbers), total, whole)
    return replace(shard, rows=len(numbers), total=total, numbers=numbers, whole=whole, notes=(*shard.notes, note))


def said_of(read: int, total: int, whole: Whole | None, what: str = "rows") -> str:
    """What was looked at, for the reports."""
    said = f"{read:,} of {total:,} {what} were looked at, in blocks over the file"
    if whole is None:
        return said
    seen = f"all {what}" if whole.rows >= total else f"the first {whole.rows:,} {what} (the time was used up)"
    copies = "" if whole.digests is None else ", copies"
    return f"{said}; {seen} were looked at for values that are not finite or far out{copies} and empty rows"
