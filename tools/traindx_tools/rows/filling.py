"""What rows of ids are filled up with behind their content."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

ROWS, SHARE, ONE, LENGTHS, STRAY = 48, 0.2, 0.95, 4, 0.001
_Ids = NDArray[np.float64]


@dataclass
class Filling:
    """What rows are filled up with, summed over the measured batches."""

    rows: int = 0
    filled: Counter[int] = field(default_factory=Counter)
    lengths: set[int] = field(default_factory=set)
    before: Counter[int] = field(default_factory=Counter)
    """Ids before the fill."""

    @property
    def filler(self) -> int | None:
        """The id that fills rows up and stands nowhere else; None where there is none."""
        total = sum(self.filled.values())
        if total < max(ROWS, SHARE * self.rows) or len(self.lengths) < LENGTHS:
            return None
        (value, count), = self.filled.most_common(1)
        strays = self.before[value]
        return value if count >= ONE * total and strays <= STRAY * max(1, self.before.total()) else None


def look(filling: Filling, rows: _Ids) -> None:
    """Adds one batch of ids, shape (B, T). A row is filled up where its last id stands twice at least, and not only."""
    for row in rows.astype(np.int64):
        other = np.flatnonzero(row != row[-1])
        end = int(other[-1]) + 1 if len(other) else 0
        if not end:
            continue
        filling.rows += 1
        if len(row) - end >= 2:
            filling.filled[int(row[-1])] += 1
            filling.lengths.add(len(row) - end)
        values, counts = np.unique(row[:end], return_counts=True)
        filling.before.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
