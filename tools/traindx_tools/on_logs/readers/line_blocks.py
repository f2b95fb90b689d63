"""Whole lines of a text, megabytes at a time, grouped by what differs in digits only.

A log holds few shapes of lines. All lines of one shape are equally long and have their numbers in the same places:
they are cut out and converted column by column (`line_numbers.py`) instead of line by line. What a block cannot hold as
it is (redrawn bars, escape codes, lines without an end) comes as single lines, as `lines.py` reads them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.artifacts import Source, encoding_of
from traindx_tools.on_logs.readers.lines import MAX_LINE, LineStats, read_lines
from traindx_tools.on_logs.run import Ints

CHUNK = 8 << 20
LONGEST_SHAPE = 2_000
"""Bytes of a line up to which it is grouped with others; longer ones stand for themselves."""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_TURNS = 24
"""Shapes of one length that are told apart by comparing; more are sorted."""
_NOT_PLAIN = (b"\r", b"\x08", b"\x1b", b"\0")

Bytes = NDArray[np.uint8]
Group = tuple[bytes, Ints]
"""A mask (the line with every digit replaced by 0) and the places of its lines in the block, ascending."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some lines of a text, without the end of the last one. `first`: the number of the first, 1-based."""

    data: bytes
    first: int

    @cached_property
    def starts(self) -> Ints:
        """Where each line begins."""
        return np.concatenate([np.zeros(1, np.int64), self._ends_but_last + 1])

    @cached_property
    def ends(self) -> Ints:
        """Where each line ends."""
        return np.append(self._ends_but_last, len(self.data))

    @cached_property
    def _ends_but_last(self) -> Ints:
        return np.flatnonzero(np.frombuffer(self.data, np.uint8) == 10).astype(np.int64)

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, at: int) -> str:
        """A line."""
        return self.data[self.starts[at]:self.ends[at]].decode("utf-8", "replace")

    @cached_property
    def filled(self) -> Ints:
        """How many lines before each are not empty; one entry more than lines."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.ends > self.starts)])

    @cached_property
    def groups(self) -> list[Group]:
        """Lines by shape, in the order of the first of each. Empty lines are left out."""
        masked = self.data.translate(_DIGITS)
        lengths = self.ends - self.starts
        short = np.flatnonzero((lengths > 0) & (lengths <= LONGEST_SHAPE))
        order = short[np.argsort(lengths[short].astype(np.uint16), kind="stable")]
        edges = np.flatnonzero(np.diff(lengths[order])) + 1
        found = [g for part in np.split(order, edges) if len(part)
                 for g in _told_apart(_cut(masked, self.starts[part], int(lengths[part[0]])), part)]
        return sorted(found, key=lambda g: int(g[1][0]))

    @cached_property
    def long(self) -> Ints:
        """The lines that are in no group."""
        return np.flatnonzero(self.ends - self.starts > LONGEST_SHAPE)

    def rows(self, places: Ints) -> Bytes:
        """The bytes of lines of one length: shape (lines, length)."""
        length = int(self.ends[places[0]] - self.starts[places[0]])
        return _cut(self.data, self.starts[places], length).view(np.uint8).reshape(len(places), length)


def _cut(data: bytes, starts: Ints, length: int) -> NDArray[np.bytes_]:
    windows = np.ndarray((len(data) - length + 1,), f"S{length}", buffer=data, strides=(1,))
    return windows[starts]


def _told_apart(masks: NDArray[np.bytes_], places: Ints) -> Iterator[Group]:
    """The groups among lines of one length. No line holds a zero byte: comparing stops there."""
    for _ in range(_TURNS):
        if not len(masks):
            return
        same = masks == masks[0]
        yield bytes(masks[0]), places[same]
        masks, places = masks[~same], places[~same]
    if len(masks):
        each, of = np.unique(masks, return_inverse=True)
        order = np.argsort(of, kind="stable")
        for mask, part in zip(each, np.split(places[order], np.flatnonzero(np.diff(of[order])) + 1), strict=True):
            yield bytes(mask), part


def each_block(source: Source, block: Callable[[Block], None], line: Callable[[int, str], None],
               stats: LineStats | None = None) -> None:
    """Reads a source: whole blocks of plain lines go to `block`, all else goes to `line`, in order.

    Together they are the lines that `read_lines` tells of. Raises OSError.
    """
    stats = stats or LineStats()
    with source.open() as stream:
        encoding = encoding_of(source.head)
        number, rest = (_blocks(stream, block, line) if encoding == "utf-8-sig" else (1, b""))
        if encoding != "utf-8-sig" or rest:
            for at, text in read_lines(_Behind(rest, stream), "utf-8" if number > 1 else encoding, stats):
                line(at + number - 1, text)


def _blocks(stream: BinaryIO, block: Callable[[Block], None], line: Callable[[int, str], None]) -> tuple[int, bytes]:
    """Blocks as far as lines have a bearable length; the number of the next line, and what was read of the rest."""
    number, rest = 1, b""
    while data := stream.read(CHUNK):
        if number == 1 and not rest:
            data = data.removeprefix(b"\xef\xbb\xbf")
        data = rest + data
        at = data.rfind(b"\n")
        whole, behind = data[: max(at, 0)], data[at + 1:]
        if at < 0 or len(behind) > MAX_LINE:
            return number, data
        if b"\r\n" in whole or whole.endswith(b"\r"):
            whole = (whole + b"\n").replace(b"\r\n", b"\n")[:-1]
        lines = Block(whole, number)
        if len(lines) and int((lines.ends - lines.starts).max()) > MAX_LINE:
            return number, data
        _hand(lines, block, line)
        number += len(lines)
        rest = behind
    if rest:
        _hand(Block(rest, number), block, line)
    return number, b""


def _hand(lines: Block, block: Callable[[Block], None], line: Callable[[int, str], None]) -> None:
    if not any(sign in lines.data for sign in _NOT_PLAIN):
        block(lines)
        return
    for at, text in read_lines(io.BytesIO(lines.data), "utf-8"):
        line(at + lines.first - 1, text)


class _Behind(io.RawIOBase):
    """What was read already, then the rest of the stream."""

    def __init__(self, read: bytes, stream: BinaryIO) -> None:
        self._read, self._stream = read, stream

    def read(self, size: int = -1) -> bytes:
        if self._read:
            got, self._read = self._read, b""
            return got
        return self._stream.read(size)
