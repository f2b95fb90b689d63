"""One pass over a log that keeps where each template and each value of its variables stands.

The lines of a chunk are grouped by their masks, and variables are read for all lines of a mask at once. Memory is
bounded, a few bytes a line and a value: `MOST_KEPT` values, `MOST_MASKS` masks; what is beyond is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.events.shapes import LONGEST, Mask, Templates
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.readers.lines import ESCAPE

CHUNK = 4 << 20
MOST_MASKS = 60_000
MOST_KEPT = 6_000_000
PART = 1 << 20
"""Lines that are looked at together where there may be very many."""
SAMPLE = 4_000
"""Values of a variable after which it is asked whether it repeats at all."""
DISTINCT = 0.7
"""Share of distinct values from which a variable counts or measures and names nothing."""
_ESCAPED = re.compile(ESCAPE.pattern.encode())

Lines = NDArray[np.signedinteger[Any]]
"""Numbers of lines; of very long logs in four bytes each."""
MaskIds = np.ndarray[tuple[int, ...], np.dtype[np.uint16]]
Key = tuple[int, int, str]
"""Template, token, and the token's mask."""


@dataclass
class _Kept:
    values: list[NDArray[np.unsignedinteger[Any]]] = field(default_factory=list)
    lines: list[NDArray[np.int32]] = field(default_factory=list)
    count: int = 0
    asked: bool = False
    dropped: bool = False

    def add(self, values: NDArray[np.unsignedinteger[Any]], lines: NDArray[np.int32]) -> int:
        self.values.append(values)
        self.lines.append(lines)
        self.count += len(values)
        if not self.asked and self.count >= SAMPLE:
            self.asked = True
            seen = np.concatenate(self.values)
            if len(np.unique(seen)) > DISTINCT * len(seen):
                before, self.count = self.count, 0
                self.drop()
                return len(values) - before
        return len(values)

    def drop(self) -> None:
        self.dropped, self.values, self.lines = True, [], []


@dataclass(eq=False)
class EventLog:
    """The lines of one source as events. `lines`: how many; `unread`: those of no mask that is kept."""

    source: str
    templates: Templates = field(default_factory=Templates)
    masks: list[Mask] = field(default_factory=list)
    lines: int = 0
    unread: int = 0
    kept: dict[Key, _Kept] = field(default_factory=dict)
    header: str = ""
    """The first line: it names the columns of a table."""
    _ids: list[MaskIds] = field(default_factory=list)
    _table: dict[bytes, int] = field(default_factory=dict)
    _total: int = 0

    def of_masks(self) -> MaskIds:
        """The mask of each line, beyond all masks for those that are not kept and for empty lines."""
        if len(self._ids) > 1:
            self._ids = [np.concatenate(self._ids)]
        return self._ids[0] if self._ids else np.zeros(0, dtype=np.uint16)

    def alike(self, lines: Lines) -> Lines:
        """All lines of the templates of some lines: every record of a series of which some are known."""
        ids = self.of_masks()
        own = ids[lines - 1]
        wanted = {self.masks[i].template for i in np.unique(own).tolist() if i < len(self.masks)}
        chosen = np.zeros(1 << 16, bool)
        chosen[[i for i, mask in enumerate(self.masks) if mask.template in wanted]] = True
        found = chosen[ids]
        found[lines - 1] = True
        return np.asarray(places_of(found) + np.int32(1))

    def take(self, data: bytes) -> None:
        """Whole lines, one after another."""
        block = Block(data, self.lines + 1)
        ids = np.full(len(block), -2, np.int32)
        ids[block.long] = -1
        found: dict[int, Lines] = {}
        for mask, places in block.groups:
            known = self._table.get(mask)
            if known is None:
                at = int(places[0])
                known = self._new(mask, data[block.starts[at]:block.ends[at]])
            ids[places] = known
            if known >= 0 and self.masks[known].variables:
                found[known] = places
        self.unread += int((ids == -1).sum())
        for known in sorted(found):
            self._variables(known, block, found[known])
        while self._total > MOST_KEPT:  # what nearly every line has gives way to what few have
            most = max((k for k in self.kept.values() if not k.dropped), key=lambda k: k.count)
            self._total -= most.count
            most.drop()
        self._ids.append(ids.astype(np.uint16))  # -1 and -2 become the largest
        self.lines += len(block)

    def _new(self, mask: bytes, line: bytes) -> int:
        known = self._table.get(mask)
        if known is not None:
            return known
        if not mask.strip() or len(mask) > LONGEST or len(self.masks) >= MOST_MASKS:
            return -2 if not mask.strip() else -1
        found = self.templates.learn(mask.decode("latin-1"), line.decode("latin-1"))
        self.masks.append(found)
        self._table[mask] = len(self.masks) - 1
        return len(self.masks) - 1

    def _variables(self, mask: int, block: Block, places: Lines) -> None:
        wanted = [v for v in self.masks[mask].variables if not self._of(mask, v.number, v.mask).dropped]
        signs = np.frombuffer(block.data, np.uint8)
        starts = block.starts[places] if wanted else places
        for v in wanted:
            value = np.zeros(len(places), dtype=np.int64)
            for at in v.digits:
                value = value * 10 + (signs[starts + at] - np.uint8(48))
            kept = self._of(mask, v.number, v.mask)
            lines = (places + block.first).astype(np.int32)
            self._total += kept.add(value.astype(np.min_scalar_type(int(value.max()))), lines)

    def _of(self, mask: int, token: int, text: str) -> _Kept:
        return self.kept.setdefault((self.masks[mask].template, token, text), _Kept())


def places_of(chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Where it holds, a part after the other: in four bytes each, for of a very long log these are many."""
    starts = range(0, len(chosen), PART)
    parts = [np.flatnonzero(chosen[a: a + PART]).astype(np.int32) + np.int32(a) for a in starts]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _whole_lines(source: Source) -> Iterator[bytes]:
    rest = b""
    with source.text() as stream:
        while data := stream.read(CHUNK):
            data = rest + data
            at = data.rfind(b"\n")
            rest, data = data[at + 1:], data[: at + 1]
            if at >= 0:
                data = _ESCAPED.sub(b"", data) if b"\x1b" in data else data
                yield data.replace(b"\r\n", b"\n") if b"\r" in data else data
            if len(rest) > CHUNK:
                rest = rest[:LONGEST]
    if rest:
        yield rest


def collect(source: Source) -> EventLog | None:
    """The events of a text; None where it is none. Raises OSError."""
    if is_binary(source.head):
        return None
    log = EventLog(source.name)
    for data in _whole_lines(source):
        if not log.lines:
            log.header = data[:LONGEST].split(b"\n", 1)[0].decode("latin-1")
        log.take(data)
    return log
