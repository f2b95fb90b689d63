"""Everything that was seen of pairs: groups of trained and of evaluated ones, by what they are pairs of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.pairs import MOST_GROUPS, MOST_LABELS, NO_LABEL, Ints, PairGroup
from traindx_tools.rows.reversed_pairs import Reversed, reversed_pairs

At = TypeVar("At")

MOST_SCOPES = 16
ORDINALS = 4
"""Calls of one place between two training steps that are a group each; later ones are one."""
MOST_TOLD = 3


@dataclass
class _Scope(Generic[At]):
    ids: bool
    trained: dict[Hashable, PairGroup] = field(default_factory=dict)
    evaluated: dict[Hashable, PairGroup] = field(default_factory=dict)
    places: dict[Hashable, At] = field(default_factory=dict)


@dataclass(frozen=True)
class Told(Generic[At]):
    """What is said of one evaluated place."""

    seen: Reversed
    at: At
    ids: bool
    step: int


class PairBooks(Generic[At]):
    """A scope is a table of so many rows, an input by its name, or a model: pairs of one are comparable."""

    def __init__(self) -> None:
        self._scopes: dict[Hashable, _Scope[At]] = {}
        self._ordinals: Counter[Hashable] = Counter()
        self._groups = 0

    def train(self, scope: Hashable, order: Hashable, u: Ints, v: Ints, step: int, *, ids: bool,
              label: NDArray[np.float64] | None = None) -> None:
        """Pairs of a training step. `order`: which of its calls it is."""
        book = self._scope(scope, ids)
        group = None if book is None else self._group(book.trained, order)
        if group is not None:
            group.take(u, v, step, _labels(label, len(u)))

    def stepped(self) -> None:
        """A training step comes: calls are counted anew."""
        self._ordinals.clear()

    def evaluate(self, scope: Hashable, key: Hashable, at: At, u: Ints, v: Ints, step: int, *, ids: bool,
                 ordinal: int) -> None:
        """Pairs of an evaluated call. `key`: its place in the program; `ordinal`: as `next_ordinal` counted it."""
        book = self._scope(scope, ids)
        for name in ((key, None), (key, ordinal)) if book is not None else ():
            group = self._group(book.evaluated, name) if book is not None else None
            if group is not None and book is not None:
                group.take(u, v, step)
                book.places.setdefault(name, at)

    def next_ordinal(self, key: Hashable) -> int:
        """Which call of this place it is since the last training step."""
        self._ordinals[key] += 1
        return min(self._ordinals[key], ORDINALS + 1)

    def told(self) -> Iterator[Told[At]]:
        """The clearest places, one for each; the most telling first."""
        found = []
        for book in self._scopes.values():
            if book.trained and book.evaluated:
                found += [Told(seen, book.places[key], book.ids, book.evaluated[key].step)
                          for key, seen in reversed_pairs(book.trained, book.evaluated)]
        places: set[At] = set()
        for one in sorted(found, key=lambda t: (t.seen.hits * t.seen.share, t.step), reverse=True):
            if one.at not in places and len(places) < MOST_TOLD:
                places.add(one.at)
                yield one

    def _scope(self, scope: Hashable, ids: bool) -> _Scope[At] | None:
        if scope not in self._scopes and len(self._scopes) >= MOST_SCOPES:
            return None
        return self._scopes.setdefault(scope, _Scope(ids))

    def _group(self, groups: dict[Hashable, PairGroup], key: Hashable) -> PairGroup | None:
        if key not in groups:
            if self._groups >= MOST_GROUPS:
                return None
            self._groups += 1
        return groups.setdefault(key, PairGroup())


def _labels(label: NDArray[np.float64] | None, rows: int) -> Ints | None:
    if label is None or len(label) != rows or not np.isfinite(label).all() or (label != np.round(label)).any():
        return None
    return label.astype(np.int64) if len(np.unique(label)) <= MOST_LABELS else np.full(rows, NO_LABEL)
