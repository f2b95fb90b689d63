"""Flat JSON objects, a line each: those that differ in digits only are read together.

What a member is called and where its number stands is worked out on one line of a shape. Nested objects and lists,
names and texts with digits that differ from line to line, and numbers that JSON does not know go through `json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_logs.readers.columns import RowReading, number
from traindx_tools.on_logs.readers.line_blocks import Block, same_bytes
from traindx_tools.on_logs.readers.line_numbers import NOWHERE, Place, numbers, place
from traindx_tools.on_logs.run import Ints

_SPACE = rb"[ \t]*"
_MEMBER = re.compile(
    _SPACE + rb'"([^"\\\x00-\x1f]*)"' + _SPACE + rb":" + _SPACE
    + rb'(?:(-?0+(?:\.0+)?(?:[eE][+-]?0+)?|NaN|-?Infinity)|("[^"\\\x00-\x1f]*"|null|true|false))' + _SPACE)
_OPEN, _CLOSE = re.compile(_SPACE + rb"\{"), re.compile(rb"\}" + _SPACE)
_MOST = 50_000
FEWEST = 4
"""Lines of a shape in a block below which reading them one by one is quicker."""


def parse(text: str) -> Any:
    """The value of a JSON text, None where it is none. Deeply nested text is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class _Record:
    """The members of lines of one shape."""

    names: tuple[str, ...]
    numbers: dict[int, Place]
    texts: tuple[tuple[int, int], ...]
    """Names and texts with digits in them: they have to be the same in all lines."""


@dataclass
class JsonRows:
    """Takes blocks for a `RowReading`; `line` reads one line."""

    reading: RowReading
    line: Callable[[int, str], None]
    _known: dict[bytes, _Record | None] = field(default_factory=dict)
    _parts: list[tuple[_Record, Ints]] = field(default_factory=list)

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        together: dict[tuple[str, ...], list[tuple[_Record, Ints]]] = {}
        alone = [block.long]
        for mask, places in block.groups:
            record = self._record(mask, block, int(places[0])) if len(places) >= FEWEST else None
            if record is None:
                for at in places.tolist():
                    one = self._single(block.text(at)) if together else None
                    if one is None:
                        alone.append(np.array([at]))
                    else:
                        together.setdefault(one.names, []).append((one, np.array([at])))
                continue
            fits = _fits(block, record, places)
            alone.append(places[~fits])
            together.setdefault(record.names, []).append((record, places[fits]))
        self._in_order(block, together, np.sort(np.concatenate(alone)))

    def _in_order(self, block: Block, together: dict[tuple[str, ...], list[tuple[_Record, Ints]]], alone: Ints
                  ) -> None:
        """Stretches of lines with the same members, and single lines, one after the other."""
        kinds = np.full(len(block), -1)
        tables = []
        for kind, (names, parts) in enumerate(together.items()):
            kinds[np.concatenate([p for _, p in parts])] = kind
            tables.append(_Table(block, names, parts))
        kinds[alone] = -2
        turns = np.flatnonzero(np.diff(kinds, prepend=-3))
        for start, end in zip(turns.tolist(), [*turns[1:].tolist(), len(block)], strict=True):
            if kinds[start] >= 0:
                tables[kinds[start]].add(self.reading, start, end)
            elif kinds[start] == -2:
                for at in range(start, end):
                    self.line(block.first + at, block.text(at))

    def _single(self, line: str) -> _Record | None:
        """One line as a row of the table that the others make; None where it is for `line`."""
        record = parse(line)
        if not isinstance(record, dict) or any(isinstance(v, (dict, list)) for v in record.values()):
            return None
        names = tuple(record)
        wanted = self.reading.takes(names)
        if wanted is None or any(isinstance(record[names[i]], str) for i in wanted):
            return None
        told = {i: number(record[names[i]]) for i in wanted}
        return _Record(names, {i: NOWHERE._replace(constant=v) for i, v in told.items() if v is not None}, ())

    def _record(self, mask: bytes, block: Block, at: int) -> _Record | None:
        if mask not in self._known:
            found = _learned(mask, block.data[block.starts[at]:block.ends[at]])
            if found is not None and (not found.names or self.reading.takes(found.names) is None):
                found = None
            if len(self._known) < _MOST:
                self._known[mask] = found
            return found
        return self._known[mask]


def _learned(mask: bytes, line: bytes) -> _Record | None:
    """The members of a line, None for one that is no flat object of plain texts and numbers."""
    if not mask.isascii():
        return None
    opened = _OPEN.match(mask)
    at = opened.end() if opened else -1
    names: list[str] = []
    found: dict[int, Place] = {}
    texts: list[tuple[int, int]] = []
    while opened:
        member = _MEMBER.match(mask, at)
        if member is None:
            return None
        names.append(line[slice(*member.span(1))].decode())
        texts += [member.span(i) for i in (1, 3) if member[i] and b"0" in member[i]]
        if member[2]:
            one = place(*member.span(2), member[2].replace(b"Infinity", b"inf"))
            if one is None:
                return None
            found[len(names) - 1] = one
        at = member.end()
        if mask[at:at + 1] == b",":
            at += 1
            continue
        if not _CLOSE.fullmatch(mask, at) or len(set(names)) < len(names):
            return None
        texts_only = [i for i in range(len(names)) if i not in found]
        plain = all(not any(c.isdigit() for c in t) for t in _texts(mask, line, texts_only))
        return _Record(tuple(names), found, tuple(texts)) if plain else None
    return None


def _texts(mask: bytes, line: bytes, which: list[int]) -> Iterator[str]:
    """The texts that are values: one with digits may be a number or a time in quotes."""
    members = list(_MEMBER.finditer(mask))
    yield from (line[slice(*members[i].span(3))].decode() for i in which if members[i].span(3)[0] >= 0)


def _fits(block: Block, record: _Record, places: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The lines whose texts are those of the first, and whose numbers begin with no zero too many."""
    starts = block.starts[places]
    fits = np.ones(len(places), bool)
    for start, end in record.texts:
        fits &= same_bytes(block.data, starts + start, end - start)
    data = np.frombuffer(block.data, np.uint8)
    for one in record.numbers.values():
        if one.wholes > 1:
            fits &= data[starts + one.whole] != ord("0")
    return fits


class _Table:
    """All lines of a block that have the same members, as columns."""

    def __init__(self, block: Block, names: tuple[str, ...], parts: list[tuple[_Record, Ints]]) -> None:
        self.block, self.names = block, names
        places = np.concatenate([p for _, p in parts])
        self.order = np.argsort(places, kind="stable")
        self.places = places[self.order]
        self.cells = {}
        counts = [len(p) for _, p in parts]
        for i in range(len(names)):
            there = np.repeat([i in r.numbers for r, _ in parts], counts)
            values = np.zeros(len(places))
            having = [(r, p) for r, p in parts if i in r.numbers]
            if having:
                starts = block.starts[np.concatenate([p for _, p in having])]
                values[there] = numbers(block.data, starts, [r.numbers[i] for r, _ in having],
                                        [len(p) for _, p in having])
            self.cells[i] = (values[self.order], there[self.order])

    def add(self, reading: RowReading, start: int, end: int) -> None:
        """Hands over the rows of the lines from `start` to `end`."""
        at = slice(*np.searchsorted(self.places, (start, end)).tolist())
        reading.rows(self.places[at] + self.block.first, self.names,
                     {i: (values[at], there[at]) for i, (values, there) in self.cells.items()})
