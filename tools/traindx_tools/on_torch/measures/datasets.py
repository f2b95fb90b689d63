"""The datasets that DataLoaders draw from: a number each, what their rows can be told apart by, what was drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx_tools.on_torch.drawn import Draw
from traindx_tools.rows.coverage import Coverage
from traindx_tools.rows.groupings import Grouping, groupings
from traindx_tools.rows.stored_rows import reference

MOST = 16
"""Datasets of one process that are followed."""


class Datasets:
    """No dataset is kept alive: one that is gone has its number, and another one at its address gets its own."""

    def __init__(self) -> None:
        self._wholes: dict[int, tuple[Callable[[], Any], int]] = {}
        self._told: list[tuple[str, tuple[Grouping, ...]]] = []
        self.coverages: list[Coverage] = []

    def note(self, draw: Draw) -> None:
        """A draw of a DataLoader."""
        number = self.number(draw)
        if number is None and len(self._told) < MOST:
            number = len(self._told)
            name = type(draw.whole).__name__
            self._wholes[id(draw.whole)] = reference(draw.whole), number
            self._told.append((name, groupings(draw.whole)))
            self.coverages.append(Coverage.of(name, draw.whole))
        if number is not None:
            self.coverages[number].take(draw.base, id(draw.dataset), draw.epoch)

    def number(self, draw: Draw) -> int | None:
        """The number of the dataset that a draw is from."""
        known = self._wholes.get(id(draw.whole))
        return known[1] if known is not None and known[0]() is draw.whole else None

    def of(self, number: int) -> tuple[str, tuple[Grouping, ...]]:
        """The class of a dataset, and what its rows can be told apart by."""
        return self._told[number]
