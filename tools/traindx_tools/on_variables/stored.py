"""What becomes of entries after they were stored: an array that stands in many of them and is written to again.

Two looks: at the first, arrays that lie in several entries of a history are remembered by address with a checksum; at
the next, those that still lie in them and hold something else have changed behind the entries' back. Where nothing is
written to between two looks (the episode is over), two parts of an entry that are one array, in several entries, tell
the same.
"""

from __future__ import annotations

import weakref
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_variables.look import History, Place

TWINS = 0.9
"""Share of the entries in which two parts are one array: the first step after a reset may differ."""
IN_ENTRIES = 4
"""Entries of one history from which an array counts as shared: a frame that is the next state of one step and the state
of another lies in two parts, once each."""
WATCHED = 8
"""Arrays of one part that are remembered between two looks."""
MOST_VALUES = 1024
MOST_HISTORIES = 16
Address = tuple[int, int]


@dataclass(frozen=True)
class Stored:
    """One part of a history whose arrays changed after they were stored."""

    place: Place
    owner: tuple[str, str] | None
    part: str
    entries: int
    """Entries that were looked at."""
    arrays: int
    """Distinct arrays that this part of them lies in."""
    shared: int
    """Entries whose array lies in `IN_ENTRIES` entries and more."""
    watched: int
    changed: int
    first_step: int
    step: int
    twin: str = ""
    """Another part that is the same array in nearly all entries."""


@dataclass(eq=False)
class _Before:
    step: int
    total: int
    first: int
    watched: dict[tuple[str, Address], tuple[weakref.ref[Any], int]] = field(default_factory=dict)


class StoredItems:
    """Compares each look with the one before."""

    def __init__(self) -> None:
        self._before: dict[Place, _Before] = {}

    def look(self, step: int, histories: Mapping[Place, History]) -> Iterator[Stored]:
        """What changed since the last look."""
        for place, history in list(histories.items())[:MOST_HISTORIES]:
            parts = history.parts()
            counts = {name: Counter(map(address, arrays)) for name, arrays in parts.items()}
            before = self._before.get(place)
            first = id(history.entries[0]) if history.entries else 0
            if before is not None and (history.total > before.total or first != before.first):
                yield from _judged(step, history, parts, counts, before)
            made = self._before[place] = _Before(step, history.total, first)
            for name, arrays in parts.items():
                shared = {a for a, n in counts[name].most_common(WATCHED) if n >= IN_ENTRIES}
                for array in arrays:
                    if (at := address(array)) in shared:
                        shared.discard(at)
                        made.watched[name, at] = (weakref.ref(array), checksum(array))


def _judged(step: int, history: History, parts: Mapping[str, Sequence[Any]],
             counts: Mapping[str, Counter[Address]], before: _Before) -> Iterator[Stored]:
    for name, count in counts.items():
        watched = [(ref(), was) for (part, at), (ref, was) in before.watched.items() if part == name and at in count]
        alive = [(array, was) for array, was in watched if array is not None]
        changed = sum(checksum(array) != was for array, was in alive)
        shared = sum(n for n in count.values() if n >= IN_ENTRIES)
        twin = _twin(name, parts) if shared else ""
        if changed or twin:
            yield Stored(history.place, history.owner, name, len(parts[name]), len(count), shared, len(alive), changed,
                         before.step, step, twin)


def _twin(name: str, parts: Mapping[str, Sequence[Any]]) -> str:
    mine = parts[name]
    for other, arrays in parts.items():
        if other != name and len(arrays) == len(mine):
            same = sum(address(a) == address(b) for a, b in zip(mine, arrays, strict=True))
            if same >= TWINS * len(mine):
                return other
    return ""


def address(array: Any) -> Address:
    """Where an array begins in memory, and how many bytes it has."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0]), int(array.nbytes)
    return int(array.data_ptr()), int(array.numel() * array.element_size())


def checksum(array: Any) -> int:
    """Of at most `MOST_VALUES` elements, spread over the array."""
    if isinstance(array, np.ndarray):
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat[:MOST_VALUES]
        return zlib.crc32(np.ascontiguousarray(flat[::max(1, flat.size // MOST_VALUES)]).tobytes())
    import torch

    flat = array.detach().reshape(-1) if array.is_contiguous() else array.detach()[:64].reshape(-1)
    some = flat[::max(1, flat.numel() // MOST_VALUES)][:MOST_VALUES].contiguous()
    return zlib.crc32(some.view(torch.uint8).numpy().tobytes())
