"""Which rows of a dataset are drawn in each epoch, how often, and in what order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 5_000_000
"""Rows of a dataset that are counted."""


@dataclass(eq=False)
class Coverage:
    """The draws of one dataset (or part of one). `complete`: rows drawn in each epoch that has ended."""

    name: str
    dataset: int
    counts: NDArray[np.uint16]
    complete: list[int] = field(default_factory=list)
    heads: list[tuple[int, ...]] = field(default_factory=list)
    """The first rows of each epoch."""
    _epoch: int = 0
    _drawn: int = 0

    @classmethod
    def of(cls, name: str, dataset: Any) -> Coverage:
        """Of a dataset that says how many rows it has; of none else."""
        try:
            rows = len(dataset)
        except Exception:  # noqa: BLE001 - a dataset of the user may do anything
            rows = 0
        return cls(name, id(dataset), np.zeros(rows if 0 < rows <= MOST_ROWS else 0, np.uint16))

    def take(self, index: NDArray[np.int64], epoch: int) -> None:
        """A batch of the epoch."""
        if epoch != self._epoch:
            if self._drawn:
                self.complete.append(self._drawn)
            self._epoch, self._drawn = epoch, 0
            self.heads.append(())
        self._drawn += len(index)
        if len(self.heads[-1]) < 32:
            self.heads[-1] = (*self.heads[-1], *index.tolist())[:32]
        inside = index[(index >= 0) & (index < len(self.counts))]
        np.add.at(self.counts, inside[self.counts[inside] < 60_000], 1)
