"""JSON lines of a file that is too large to be parsed as a whole: blocks of its lines, and one look at all others.

All lines are counted and hashed. Parsed are the first ones of each block and those that may be damaged (no bracket at
an end) or hold NaN or infinity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.streamed import PIECES
from traindx_tools.on_data.shard import Whole
from traindx_tools.on_data.whole_pass import MOST_POINTED

PARSED = 2**25
"""Bytes of all lines of a set that are parsed: about a third of a second."""
SMALLEST, LARGEST = 2**18, 2**23
"""Bytes of a block."""
MOST_LINE = 2**24
"""Bytes of one line."""
SHORT = 40
"""Bytes below which two lines may well be the same."""
_ODD = (b"NaN", b"Infinity")
_BEGINS, _ENDS = np.zeros(256, bool), np.zeros(256, bool)
_BEGINS[list(b"{[")] = True
_ENDS[list(b"}]")] = True


@dataclass
class Lines:
    """Lines of a file by their numbers, and what was seen of all."""

    kept: list[tuple[int, bytes]] = field(default_factory=list)
    rows: int = 0
    pointed: int = 0
    digests: list[Array] = field(default_factory=list)
    telling: list[Array] = field(default_factory=list)
    whole: bool = True
    """Whether all lines were seen before the time was used up."""

    def take(self, block: bytes, most: int) -> None:
        """Takes whole lines, of which those within the first `most` bytes are kept."""
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        ends = np.cumsum(lengths + 1)
        first = max(1, int(np.searchsorted(ends, most)))
        places = dict.fromkeys([*range(min(first, len(lines))), *self._pointed(block, lengths, ends)])
        self.kept += [(self.rows + i, lines[i]) for i in sorted(places)]
        self.digests.append(np.fromiter(map(hash, lines), np.int64, len(lines)).view(np.uint64))
        self.telling.append(lengths >= SHORT)
        self.rows += len(lines)

    def _pointed(self, block: bytes, lengths: Array, ends: Array) -> list[int]:
        """The lines that are parsed wherever they stand, as long as they are few."""
        found: list[int] = []
        for mark in _ODD:
            at = block.find(mark)
            while at >= 0 and self.pointed + len(found) < MOST_POINTED:
                found.append(int(np.searchsorted(ends, at, side="right")))
                at = block.find(mark, int(ends[found[-1]]))
        text, some = np.frombuffer(block, np.uint8), np.flatnonzero(lengths > 0)
        starts = ends - lengths - 1
        odd = some[~(_BEGINS[text[starts[some]]] & _ENDS[text[ends[some] - 2]])]
        found += odd[: MOST_POINTED - self.pointed].tolist()
        self.pointed += len(found)
        return found

    def seen(self) -> Whole:
        """What was seen of all lines."""
        telling = np.flatnonzero(np.concatenate(self.telling)) if self.telling else np.empty(0, np.int64)
        return Whole(self.rows, {}, np.concatenate(self.digests) if self.digests else None, telling=telling)


def sampled_lines(stream: IO[bytes], size: int, bounds: Bounds) -> Lines:
    """The lines of a file of `size` bytes. Raises UnreadableInput."""
    found = Lines()
    for block in _blocks(stream, min(LARGEST, max(SMALLEST, size // PIECES))):
        found.take(block, int(PARSED * bounds.share * len(block) / size))
        if bounds.over:
            found.whole = False
            break
    return found


def _blocks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    rest = b""
    while read := stream.read(size):
        whole, mark, last = read.rpartition(b"\n")
        if not mark:
            rest += read
            if len(rest) > MOST_LINE:
                raise UnreadableInput(f"refused: a line is longer than {MOST_LINE:,} bytes")
            continue
        yield rest + whole + mark
        rest = last
    if rest:
        yield rest + b"\n"
