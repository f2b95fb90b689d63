"""Which rows of a dataset are drawn, by all loaders of it and of its parts together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 5_000_000
"""Rows of a dataset that are counted: 10 MB of counts."""


@dataclass(eq=False)
class Coverage:
    """The draws of one whole dataset."""

    name: str
    counts: NDArray[np.uint16]
    """How often each row was drawn, up to 60,000."""
    passes: dict[int, set[int]] = field(default_factory=dict)
    """The passes that were begun, by the part that was drawn from."""
    drawn: dict[int, int] = field(default_factory=dict)
    """Rows that were drawn, by part."""

    @classmethod
    def of(cls, name: str, dataset: Any) -> Coverage:
        """Of a dataset that says how many rows it has; of none else."""
        try:
            rows = len(dataset)
        except Exception:  # noqa: BLE001 - a dataset of the user may do anything
            rows = 0
        return cls(name, np.zeros(rows if 0 < rows <= MOST_ROWS else 0, np.uint16))

    def take(self, index: NDArray[np.int64], part: int, number: int) -> None:
        """A batch of a pass over a part."""
        self.passes.setdefault(part, set()).add(number)
        self.drawn[part] = self.drawn.get(part, 0) + len(index)
        inside = index[(index >= 0) & (index < len(self.counts))]
        np.add.at(self.counts, inside[self.counts[inside] < 60_000], 1)

    @property
    def complete(self) -> int:
        """Passes that have ended over the part that most rows were drawn from: another one was begun after each."""
        if not self.drawn:
            return 0
        return len(self.passes[max(self.drawn, key=lambda p: self.drawn[p])]) - 1
