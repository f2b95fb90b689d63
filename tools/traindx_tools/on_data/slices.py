"""Parts of the rows of a field along one of their axes: features of a table, channels of a signal or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

MOST_ALONG = 128
"""Places along an axis of an array of several axes; longer ones are time or space."""
SEQUENCE = 8
"""Places that a row must have to be taken for a padded sequence."""
PADDED = 0.3
"""Share of the rows that end, or begin, with the filler."""
MOST_VALUES = 2**21
"""Values of a shard from which the moments along an axis are taken."""


@dataclass(frozen=True)
class Part:
    """Place `index` along axis `axis` of the rows (0 is the first axis behind the rows)."""

    axis: int
    index: int
    axes: int
    """How many axes a row has."""

    @property
    def told(self) -> str:
        """`feature 4`, or `[:, :, 2]` as a person would index it."""
        if self.axes == 1:
            return f"feature {self.index}"
        marks = [":"] * (self.axes + 1)
        marks[self.axis + 1] = str(self.index)
        return f"channel [{', '.join(marks)}]"


def is_padded(column: Column) -> bool:
    """Whether rows of whole numbers are sequences of several lengths: one value fills the end or the start of many.

    Ids of tokens, labels and masks are: the place in the row says nothing of what the number means.
    """
    values = np.asarray(column.values)
    if values.ndim != 2 or values.dtype.kind not in "iub" or values.shape[1] < SEQUENCE or len(values) < 8:
        return False
    some = values[:: max(1, len(values) // 400)]
    for end in (some, some[:, ::-1]):
        kinds, counts = np.unique(end[:, -1], return_counts=True)
        filler = kinds[counts.argmax()]
        runs = np.logical_and.accumulate(end[:, ::-1] == filler, axis=1).sum(axis=1)
        padded = (runs >= 2) & (runs < end.shape[1])
        if padded.mean() >= PADDED and len(np.unique(runs[padded])) >= 3:
            return True
    return False


def parts_of(group: Sequence[Shard], name: str) -> list[Part]:
    """The parts that all shards have: features of a row of numbers, places along short axes of an array."""
    shapes = {s.columns[name].row_shape for s in group}
    if not shapes or len({len(s) for s in shapes}) > 1:
        return []
    axes = len(next(iter(shapes)))
    if axes == 1 and any(is_padded(s.columns[name]) for s in group):
        return []  # places in a sequence are no features
    if axes == 1:
        widths = {len(m) if (m := s.summaries[name].column_means) is not None else 0 for s in group}
        return [Part(0, i, 1) for i in range(widths.pop())] if len(widths) == 1 else []
    sizes = [{s[a] for s in shapes} for a in range(axes)]
    return [
        Part(a, i, axes)
        for a, size in enumerate(sizes)
        if len(size) == 1 and 2 <= min(size) <= MOST_ALONG
        for i in range(min(size))
    ]


def moments(shard: Shard, name: str, axis: int) -> tuple[Array, Array]:
    """Mean and standard deviation at each place along an axis, of the finite values of evenly spaced rows."""
    seen = shard.summaries[name]
    if seen.column_means is not None and seen.column_stds is not None and len(shard.columns[name].row_shape) == 1:
        return seen.column_means, seen.column_stds
    flat = _along(shard, name, axis)
    return np.nanmean(flat, axis=1), np.nanstd(flat, axis=1)


def values_at(shard: Shard, name: str, part: Part) -> Array:
    """float64: the values of a part, of evenly spaced rows."""
    if part.axes == 1:
        column = np.asarray(shard.columns[name].values).reshape(shard.rows, -1)
        return column[:20_000, part.index].astype(np.float64)
    return np.asarray(_along(shard, name, part.axis)[part.index])


def _along(shard: Shard, name: str, axis: int) -> Array:
    values = np.asarray(shard.columns[name].values)
    width = max(1, int(np.prod(values.shape[1:])))
    some = values[:: max(1, -(-values.size // MOST_VALUES))] if width <= MOST_VALUES else values[:1]
    flat = np.moveaxis(some, axis + 1, 0).reshape(values.shape[axis + 1], -1).astype(np.float64)
    return np.where(np.isfinite(flat), flat, np.nan)
