"""Names for values without computing them: two values with one name are equal, because JAX's functions are pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Ids = np.ndarray[Any, np.dtype[np.int64]]
"""The name of each key of an array of keys; of raw keys twice the name, plus 0 or 1 for the half."""


@dataclass(frozen=True)
class Facts:
    """What is known of a name. `loops`: loops in which it differs from iteration to iteration."""

    loops: frozenset[int] = frozenset()
    arguments: frozenset[str] = frozenset()
    """The arguments of the function that it depends on, by name; without one it is the same at each call."""
    stands_for: tuple[int, ...] = ()
    """Names outside a loop whose keys it takes in turn."""


@dataclass(frozen=True)
class Value:
    """What is known of a variable: its name, the keys in it, and what it holds where that is known."""

    name: int
    ids: Ids | None = None
    known: np.ndarray[Any, Any] | None = None


@dataclass
class Names:
    """Gives names and remembers what is known of them."""

    _known: dict[Any, int] = field(default_factory=dict)
    facts: list[Facts] = field(default_factory=list)

    def of(self, *what: Any, parts: Iterable[int] = (), facts: Facts | None = None) -> int:
        """The name of a value that is made in this way from these other ones; facts are joined unless given."""
        told = tuple(parts)
        key = (what, told)
        if key not in self._known:
            self._known[key] = len(self.facts)
            self.facts.append(facts or self._joined(told))
        return self._known[key]

    def array(self, shape: tuple[int, ...], *what: Any, facts: Facts | None = None, parts: Iterable[int] = ()) -> Ids:
        """A name for each element of an array that is made in this way."""
        told = tuple(parts)
        size = int(np.prod(shape, dtype=np.int64))
        return np.array([self.of(*what, i, parts=told, facts=facts) for i in range(size)], np.int64).reshape(shape)

    def each(self, ids: Ids, *what: Any, parts: Iterable[int] = ()) -> Ids:
        """A name for each element that is made in this way from that element."""
        told = tuple(parts)
        flat = [self.of(*what, parts=(int(i), *told)) for i in ids.reshape(-1)]
        found: Ids = np.array(flat, np.int64).reshape(ids.shape)
        return found

    def _joined(self, parts: tuple[int, ...]) -> Facts:
        loops = frozenset[int]().union(*(self.facts[p].loops for p in parts))
        return Facts(loops, frozenset[str]().union(*(self.facts[p].arguments for p in parts)))


def as_raw(ids: Ids) -> Ids:
    """The names of raw keys (two numbers each) for names of keys."""
    raw: Ids = np.stack([2 * ids, 2 * ids + 1], axis=-1)
    return raw
