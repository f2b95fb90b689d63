"""Whether the rows of batches come in another company each time: then none of them needs its neighbours.

Rows along the first axis of an array may be samples, the nodes of one graph or the steps of one sequence. Nodes and
steps always stand behind the same row; samples that are shuffled do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

MOST_ROWS = 20_000
FEWEST = 20
"""Rows that came again."""
APART = 0.8
"""Of those, behind which another row stood."""
DISTINCT = 0.9
"""Of the rows of a batch: rows of few values cannot be told apart."""


class Neighbours:
    """Remembers which row stood behind which, by their hashes, in bounded memory."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}
        self._came_again = self._apart = self._rows = self._kinds = 0

    def take(self, hashes: Sequence[int]) -> None:
        """The rows of a batch in their order."""
        self._rows += len(hashes)
        self._kinds += len(set(hashes))
        for row, following in pairwise(hashes):
            known = self._after.get(row)
            if known is not None:
                self._came_again += 1
                self._apart += known != following
            elif len(self._after) < MOST_ROWS:
                self._after[row] = following

    @property
    def exchanged(self) -> bool:
        """Whether enough rows came again, nearly all of them before another one."""
        return (self._came_again >= FEWEST and self._apart >= APART * self._came_again
                and self._kinds >= DISTINCT * self._rows)
