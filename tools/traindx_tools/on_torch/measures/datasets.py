"""The datasets that DataLoaders draw from: a number each, what their rows can be told apart by, what was drawn."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from traindx_tools.on_torch.drawn import Draw
from traindx_tools.rows.coverage import Coverage
from traindx_tools.rows.groupings import Grouping, groupings

MOST = 16
"""Datasets of one process that are followed."""


class Datasets:
    """No dataset is kept alive: one that is gone has its number, and another one at its address gets its own."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Callable[[], Any], Coverage]] = {}
        self._wholes: dict[int, tuple[Callable[[], Any], int]] = {}
        self._told: list[tuple[str, tuple[Grouping, ...]]] = []
        self.coverages: list[Coverage] = []

    def note(self, draw: Draw) -> None:
        """A draw of a DataLoader."""
        coverage = self._found(self._parts, draw.dataset)
        if coverage is None and len(self.coverages) < MOST:
            coverage = Coverage.of(type(draw.whole).__name__, draw.dataset)
            self.coverages.append(coverage)
            self._parts[id(draw.dataset)] = _reference(draw.dataset), coverage
        if coverage is not None:
            coverage.take(draw.index, draw.epoch)
        if self.number(draw) is None and len(self._told) < MOST:
            self._wholes[id(draw.whole)] = _reference(draw.whole), len(self._told)
            self._told.append((type(draw.whole).__name__, groupings(draw.whole)))

    def number(self, draw: Draw) -> int | None:
        """The number of the dataset that a draw is from."""
        found: int | None = self._found(self._wholes, draw.whole)
        return found

    def of(self, number: int) -> tuple[str, tuple[Grouping, ...]]:
        """The class of a dataset, and what its rows can be told apart by."""
        return self._told[number]

    @staticmethod
    def _found(among: dict[int, tuple[Callable[[], Any], Any]], dataset: Any) -> Any:
        entry = among.get(id(dataset))
        return entry[1] if entry is not None and entry[0]() is dataset else None


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # a list: it is kept, and lists of a training live as long as it does
        return lambda: value
