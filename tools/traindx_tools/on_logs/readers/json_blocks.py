"""Flat JSON objects, a line each: those that differ in digits only are read together.

What a member is called and where its number stands is worked out on one line of a shape. Nested objects and lists,
names and texts with digits that differ from line to line, and numbers that JSON does not know go through `json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_logs.readers import arrow_cells, notes
from traindx_tools.on_logs.readers.arrow_cells import Cells
from traindx_tools.on_logs.readers.columns import RowReading, number
from traindx_tools.on_logs.readers.line_blocks import DIGITS_AS_ZEROS, Block, Group, same_bytes
from traindx_tools.on_logs.readers.line_numbers import NOWHERE, Place, numbers, place
from traindx_tools.on_logs.run import Floats, Ints

_SPACE = rb"[ \t]*"
_MEMBER = re.compile(
    _SPACE + rb'"([^"\\\x00-\x1f]*)"' + _SPACE + rb":" + _SPACE
    + rb'(?:(-?0+(?:\.0+)?(?:[eE][+-]?0+)?|NaN|-?Infinity)|("[^"\\\x00-\x1f]*"|null|true|false))' + _SPACE)
_OPEN, _CLOSE = re.compile(_SPACE + rb"\{"), re.compile(rb"\}" + _SPACE)
_MOST = 50_000
MOST_REFUSED = 5
"""Families that pyarrow did not take, although they look so, after which it is asked no more."""
FEWEST = 4
"""Lines of a shape in a block below which reading them one by one is quicker."""


def parse(text: str) -> Any:
    """The value of a JSON text, None where it is none. Deeply nested text is none.

    A whole number of more digits than Python converts is as any other that no float holds.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return json.loads(text, parse_int=_whole)
        return None


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


@dataclass(frozen=True)
class _Record:
    """The members of lines of one shape."""

    names: tuple[str, ...]
    numbers: dict[int, Place]
    texts: tuple[tuple[int, int], ...]
    """Names and texts with digits in them: they have to be the same in all lines."""


_Part = tuple[_Record, Ints, "dict[int, Floats] | None"]
"""Lines with the same members, and their numbers where they were converted already."""


@dataclass
class JsonRows:
    """Takes blocks for a `RowReading`; `line` reads one line."""

    reading: RowReading
    line: Callable[[int, str], None]
    _known: dict[bytes, _Record | None] = field(default_factory=dict)
    _families: dict[bytes, tuple[_Record, Cells] | None] = field(default_factory=dict)
    _refused: int = 0

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        together: dict[tuple[str, ...], list[_Part]] = {}
        alone = [block.long]
        for mask, places in self._by_families(block, together):
            record = self._record(mask, block, int(places[0])) if len(places) >= FEWEST else None
            if record is None:
                for at in places.tolist():
                    one = self._single(block.text(at)) if together else None
                    if one is None:
                        alone.append(np.array([at]))
                    else:
                        together.setdefault(one.names, []).append((one, np.array([at]), None))
                continue
            fits = _fits(block, record, places)
            alone.append(places[~fits])
            together.setdefault(record.names, []).append((record, places[fits], None))
        self._in_order(block, together, np.sort(np.concatenate(alone)))

    def _by_families(self, block: Block, together: dict[tuple[str, ...], list[_Part]]) -> list[Group]:
        """Takes what pyarrow takes; the groups of the other lines."""
        if len(block) < arrow_cells.FEWEST or self._refused >= MOST_REFUSED or not arrow_cells.is_here():
            return block.groups
        alike: dict[Cells, tuple[_Record, list[Ints]]] = {}
        rest = []
        for bare, places in block.families:
            found = self._cells(bare, block, int(places[0])) if len(places) >= FEWEST else None
            if found is None:
                rest.append(places)
            else:  # with and without an exponent
                alike.setdefault(found[1], (found[0], []))[1].append(places)
        for cells, (record, parts) in alike.items():
            places = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            enough = len(places) >= arrow_cells.FEWEST
            told = arrow_cells.converted(block, places, cells, strict=True) if enough else None
            if told is None:
                self._refused += enough
                rest.append(places)
            else:
                values = dict(zip(record.numbers, told, strict=True))
                together.setdefault(record.names, []).append((record, places, values))
        if not together:
            return block.groups
        return block.groups_among(np.sort(np.concatenate(rest)) if rest else np.zeros(0, np.int64))

    def _cells(self, bare: bytes, block: Block, at: int) -> tuple[_Record, Cells] | None:
        """The record of a family and its cells, by its first line."""
        if bare not in self._families:
            line = block.data[block.starts[at]:block.ends[at]]
            record = self._record(line.translate(DIGITS_AS_ZEROS), block, at)
            plain = record is not None and all(p.differs for p in record.numbers.values())
            spans = [(p.start, p.end) for p in record.numbers.values()] if record is not None and plain else []
            cells = arrow_cells.cells_of(line, spans)
            self._families[bare] = None if record is None or cells is None else (record, cells)
        return self._families[bare]

    def _in_order(self, block: Block, together: dict[tuple[str, ...], list[_Part]], alone: Ints) -> None:
        """Stretches of lines with the same members, and single lines, one after the other."""
        kinds = np.full(len(block), -1)
        tables = []
        for kind, (names, parts) in enumerate(together.items()):
            kinds[np.concatenate([places for _, places, _ in parts])] = kind
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
        if notes.group_of_event(record):
            return None
        names = tuple(record)
        wanted = self.reading.takes(names)
        if wanted is None or any(isinstance(record[names[i]], str) for i in wanted):
            return None
        told = {i: number(record[names[i]]) for i in wanted}
        return _Record(names, {i: NOWHERE._replace(constant=v) for i, v in told.items() if v is not None}, ())

    def _record(self, mask: bytes, block: Block, at: int) -> _Record | None:
        if mask not in self._known:
            line = block.data[block.starts[at]:block.ends[at]]
            found = _learned(mask, line)
            if found is not None and (not found.names or self.reading.takes(found.names) is None):
                found = None
            if found is not None and _tells(found, line):
                found = None
            if len(self._known) < _MOST:
                self._known[mask] = found
            return found
        return self._known[mask]


def _tells(record: _Record, line: bytes) -> bool:
    """Whether lines of this shape say something of the run in words, or whose data they are about; then each is read
    by itself."""
    if len(record.numbers) == len(record.names):
        return False
    told = parse(line.decode("utf-8", "replace"))
    return isinstance(told, dict) and (
        notes.of_event(told, measured=False) is not None or bool(notes.group_of_event(told)))


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

    def __init__(self, block: Block, names: tuple[str, ...], parts: list[_Part]) -> None:
        self.block, self.names = block, names
        places = np.concatenate([at for _, at, _ in parts])
        self.order = np.argsort(places, kind="stable") if len(parts) > 1 else np.arange(len(places))
        self.places = places[self.order]
        self.cells = {}
        ends = np.cumsum([len(at) for _, at, _ in parts])
        within = [slice(end - len(at), end) for end, (_, at, _) in zip(ends.tolist(), parts, strict=True)]
        for i in range(len(names)):
            there, values = np.zeros(len(places), bool), np.zeros(len(places))
            for part, (record, _, told) in zip(within, parts, strict=True):
                there[part] = i in record.numbers
                if told is not None and i in told:
                    values[part] = told[i]
            having = [(part, r.numbers[i], at) for part, (r, at, told) in zip(within, parts, strict=True)
                      if told is None and i in r.numbers]
            if having:
                found = numbers(block.data, block.starts[np.concatenate([at for _, _, at in having])],
                                [p for _, p, _ in having], [len(at) for _, _, at in having])
                edges = np.cumsum([len(at) for _, _, at in having])[:-1]
                for (part, _, _), mine in zip(having, np.split(found, edges), strict=True):
                    values[part] = mine
            self.cells[i] = (values[self.order], there[self.order])

    def add(self, reading: RowReading, start: int, end: int) -> None:
        """Hands over the rows of the lines from `start` to `end`."""
        at = slice(*np.searchsorted(self.places, (start, end)).tolist())
        reading.rows(self.places[at] + self.block.first, self.names,
                     {i: (values[at], there[at]) for i, (values, there) in self.cells.items()})
