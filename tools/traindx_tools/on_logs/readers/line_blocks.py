"""Whole lines of a text, megabytes at a time, grouped by what differs in digits only.

A log holds few shapes of lines. All lines of one shape are equally long and have their numbers in the same places:
they are cut out and converted column by column (`line_numbers.py`) instead of line by line. What a block cannot hold as
it is (redrawn bars, escape codes, lines without an end) comes as single lines, as `lines.py` reads them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO, NamedTuple, ParamSpec, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs import progress
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import PlainText
from traindx_tools.on_logs.readers.block_source import chunks, worked_ahead
from traindx_tools.on_logs.readers.lines import MAX_LINE, LineStats, read_lines
from traindx_tools.on_logs.readers.recorder import Recorder
from traindx_tools.on_logs.run import Ints

LONGEST_SHAPE = 2_000
"""Bytes of a line up to which it is grouped with others; longer ones stand for themselves."""
DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
FEW = 300
"""Lines that are grouped one by one."""
_TURNS = 3
"""Shapes of one length that are told apart by comparing; more are told apart by a hash."""
_NOT_PLAIN = (b"\r", b"\x08", b"\x1b")

P = ParamSpec("P")
Group = tuple[bytes, Ints]
"""A mask (the line with every digit replaced by 0) and the places of its lines in the block, ascending."""


@dataclass(eq=False)
class Block:
    """Some whole lines of a text; the last may lack its end. `first`: the number of the first, 1-based."""

    data: bytes
    first: int
    told: list[Group] = field(default_factory=list)
    """Families that a reader of some lines knew already, with these lines."""
    worked: object = None
    """What a reader worked out of it before its turn."""

    @cached_property
    def plain(self) -> bool:
        """Whether its lines are as they stand: without redrawn bars and escape codes."""
        return not any(sign in self.data for sign in _NOT_PLAIN)

    @cached_property
    def starts(self) -> Ints:
        """Where each line begins."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1] + 1])

    @cached_property
    def ends(self) -> Ints:
        """Where each line ends."""
        found = np.flatnonzero(np.frombuffer(self.data, np.uint8) == 10)
        return found if self.data.endswith(b"\n") else np.append(found, len(self.data))

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, at: int) -> str:
        """A line."""
        return self.data[self.starts[at]:self.ends[at]].decode("utf-8", "replace")

    @property
    def is_one_family(self) -> bool:
        """Whether all lines are of one family that was told."""
        return len(self.told) == 1 and len(self.told[0][1]) == len(self)

    @cached_property
    def filled(self) -> Ints:
        """How many lines before each are not empty; one entry more than lines."""
        if self.is_one_family:
            return np.arange(len(self) + 1)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.ends > self.starts)])

    def lines(self, places: Ints) -> bytes:
        """Some lines, ascending, with their ends."""
        if len(places) == len(self):
            return self.data
        turns = np.flatnonzero(np.diff(places) != 1) + 1
        first, last = places[np.append(0, turns)], places[np.append(turns, len(places)) - 1]
        return b"".join([self.data[a:b] for a, b in
                         zip(self.starts[first].tolist(), (self.ends[last] + 1).tolist(), strict=True)])

    @cached_property
    def short(self) -> Ints:
        """The lines that are in a group."""
        lengths = self.ends - self.starts
        return np.flatnonzero((lengths > 0) & (lengths <= LONGEST_SHAPE))

    def cut_at(self, separators: bytes, order: bytes) -> Cuts:
        """Where some signs stand, of which one is the end of a line; where lines end is known then as well.

        `order`: how they usually follow each other in a line: nothing has to be looked for where all lines are so.
        """
        signs = np.frombuffer(self.data, np.uint8)
        found = signs == separators[0]
        for sign in separators[1:]:
            found |= signs == sign
        at = np.flatnonzero(found)
        cut = signs.take(at)  # a third of the time of signs[at]
        count, width = len(at) // len(order), len(order)
        same = cut.tobytes() == order * count
        line = np.arange(width - 1, len(at), width) if same else np.flatnonzero(cut == 10)
        ends = at[width - 1::width] if same else at[line]
        self.__dict__.setdefault("ends", ends if self.data.endswith(b"\n") else np.append(ends, len(self.data)))
        return Cuts(at, cut, line, order if same else None)

    def is_plain_with(self, ends: Ints) -> None:
        """Takes over from a reader where lines with an end do so, and that none of the signs is there for which a block
        is not plain."""
        self.__dict__["plain"] = True
        self.__dict__["ends"] = ends if self.data.endswith(b"\n") else np.append(ends, len(self.data))

    @cached_property
    def groups(self) -> list[Group]:
        """Lines by shape, in the order of the first of each. Empty lines are left out."""
        return self.groups_among(self.short)

    def groups_among(self, places: Ints) -> list[Group]:
        """The groups of some of the lines that are in one."""
        if len(places) <= FEW:
            by_mask: dict[bytes, list[int]] = {}
            for at in places.tolist():
                by_mask.setdefault(self.data[self.starts[at]:self.ends[at]].translate(DIGITS_AS_ZEROS), []).append(at)
            return [(mask, np.array(at)) for mask, at in by_mask.items()]
        return _grouped(self.data.translate(DIGITS_AS_ZEROS), self.starts, self.ends, places)

    @property
    def families(self) -> list[Group]:
        """Lines that differ in their digits only, however many digits these are, with the line without them.

        In the order of the first of each, without empty lines. Those of a family that was told may differ in the signs
        and exponents of numbers as well.
        """
        return sorted([*self.told, *self.other_families], key=lambda g: int(g[1][0])) if self.told else (
            self.other_families)

    @cached_property
    def other_families(self) -> list[Group]:
        """The families of the lines of which none was told."""
        left = self.without([places for _, places in self.told])
        if len(left) <= FEW:
            by_bare: dict[bytes, list[int]] = {}
            for at in left.tolist():
                line = self.data[self.starts[at]:self.ends[at]]
                by_bare.setdefault(line.translate(None, b"0123456789"), []).append(at)
            return [(bare, np.array(at)) for bare, at in by_bare.items()]
        bare = self.data.translate(None, b"0123456789")
        ends = np.flatnonzero(np.frombuffer(bare, np.uint8) == 10)
        ends = ends if bare.endswith(b"\n") and self.data.endswith(b"\n") else np.append(ends, len(bare))
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
        digits_alone = left[ends[left] == starts[left]]
        found = _grouped(bare, starts, ends, left[ends[left] > starts[left]])
        return found if not len(digits_alone) else sorted([*found, (b"", digits_alone)], key=lambda g: int(g[1][0]))

    def without(self, taken: Sequence[Ints]) -> Ints:
        """The lines that are in a group, but for some."""
        if sum(map(len, taken)) == len(self):
            return np.zeros(0, np.int64)
        left = np.zeros(len(self), bool)
        left[self.short] = True
        for places in taken:
            left[places] = False
        return np.flatnonzero(left)

    @cached_property
    def long(self) -> Ints:
        """The lines that are in no group."""
        if self.is_one_family:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.ends - self.starts > LONGEST_SHAPE)


class Cuts(NamedTuple):
    """Signs of a block that separate something: where they stand, which they are, and which of them end a line."""

    at: Ints
    signs: NDArray[np.uint8]
    line: Ints
    order: bytes | None
    """The signs of each line, where all have the same."""


def _grouped(data: bytes, starts: Ints, ends: Ints, lines: Ints) -> list[Group]:
    """The same texts among some lines, in the order of the first of each."""
    lengths = (ends - starts)[lines]
    order = np.argsort(lengths.astype(np.uint16), kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order])) + 1
    parts = [lines[part] for part in np.split(order, edges) if len(part)] if len(edges) else [lines][: len(lines)]
    found = [g for part in parts
             for g in _told_apart(data, starts[part], int(ends[part[0]] - starts[part[0]]), part)]
    return sorted(found, key=lambda g: int(g[1][0]))


def cut_out(data: bytes, starts: Ints, length: int) -> NDArray[np.bytes_]:
    """The texts of one length from each place on."""
    windows: NDArray[np.bytes_] = np.ndarray((len(data) - length + 1,), f"S{length}", buffer=data, strides=(1,))
    return np.asarray(windows[starts])


def same_bytes(data: bytes, starts: Ints, length: int) -> NDArray[np.bool_]:
    """Which of the texts of one length are the same as the first."""
    texts = cut_out(data, starts, length)
    return np.asarray(texts == texts[0])


def _told_apart(data: bytes, starts: Ints, length: int, places: Ints) -> Iterator[Group]:
    """The groups among lines of one length."""
    masks = cut_out(data, starts, length)
    for _ in range(_TURNS):
        if not len(masks):
            return
        same = masks == masks[0]
        yield bytes(masks[0]), places[same]
        other = ~same
        masks, places, starts = masks[other], places[other], starts[other]
    if len(masks):
        _, first, of = np.unique(_hashes(data, starts, length), return_index=True, return_inverse=True)
        if (masks != masks[first][of]).any():  # two masks of one hash
            _, first, of = np.unique(masks, return_index=True, return_inverse=True)
        order = np.argsort(of, kind="stable")
        parts = np.split(places[order], np.cumsum(np.bincount(of))[:-1])
        yield from ((bytes(masks[i]), part) for i, part in zip(first, parts, strict=True))


def _hashes(data: bytes, starts: Ints, length: int) -> NDArray[np.uint64]:
    """A number of each line, made of its words of eight bytes."""
    if length < 8:
        return np.unique(cut_out(data, starts, length), return_inverse=True)[1].astype(np.uint64)
    words = np.ndarray((len(data) - 7,), "<u8", buffer=data, strides=(1,))
    found = np.zeros(len(starts), np.uint64)
    for at in (*range(0, length - 8, 8), length - 8):
        found ^= words[starts + at]
        found *= np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


class Beside(Protocol):
    """Another reader of the same lines, in the same pass."""

    def line(self, number: int, text: str) -> None:
        """Takes one line."""

    def block(self, block: Block) -> None:
        """Takes a block of lines."""


def each_block(source: Source, block: Callable[[Block], None], line: Callable[[int, str], None],
               stats: LineStats | None = None, beside: Beside | None = None,
               ahead: Callable[[Block], None] | None = None, recorder: Recorder | None = None,
               times: int = 1, longest: int = MAX_LINE) -> None:
    """Reads a source: whole blocks of plain lines go to `block`, all else goes to `line`, in order.

    Together they are the lines that `read_lines` tells of; `beside` is handed the same. `ahead`: what may be worked out
    of a block in another thread before its turn, while its number is not known. `recorder`: is told before each
    block which share of the source is read with it, where that is known. `times`: how many times as large as usual
    blocks are; `longest`: bytes of a line of one. Raises OSError.
    """
    stats = stats or LineStats()
    size = source.size if recorder is not None and not source.zipped else 0
    if beside is not None:
        block, line = _both(block, beside.block), _both(line, beside.line)
    with source.text() as stream:
        if recorder is not None and size:
            block = _counting(block, recorder, size, source.name, stream)
        number, rest = _blocks(stream, block, line, ahead, times, longest)
        if rest:
            behind = cast(BinaryIO, _Behind(rest, stream))
            for at, text in read_lines(behind, "utf-8", stats):
                line(at + number - 1, text)


def _counting(block: Callable[[Block], None], recorder: Recorder, size: int, name: str,
              stream: BinaryIO) -> Callable[[Block], None]:
    read = 0

    def each(lines: Block) -> None:
        nonlocal read
        read += len(lines.data)
        as_stored = not (isinstance(stream, PlainText) and stream.changed)
        recorder.share = min(1.0, read / size) if as_stored else 0.0
        progress.tell(name, read, size)
        block(lines)

    return each


def _both(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    def each(*given: P.args, **named: P.kwargs) -> None:
        first(*given, **named)
        second(*given, **named)

    return each


def _blocks(stream: BinaryIO, block: Callable[[Block], None], line: Callable[[int, str], None],
            ahead: Callable[[Block], None] | None, times: int, longest: int) -> tuple[int, bytes]:
    """Blocks as far as lines have a bearable length; the number of the next line, and what was read of the rest."""
    number, rest = 1, b""

    def read() -> Iterator[Block]:
        nonlocal rest
        for at, data in enumerate(chunks(stream, times, longest)):
            data = data if at else data.removeprefix(b"\xef\xbb\xbf")
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            lines = Block(data, 1)
            if not _has_bearable_lines(lines, longest):
                rest = data
                return
            if data:
                yield lines

    for lines in worked_ahead(read(), ahead):
        lines.first = number
        _hand(lines, block, line)
        number += len(lines)
    return number, rest


def _has_bearable_lines(block: Block, longest: int) -> bool:
    """Whether no line is longer than that: from each end of one, another is as near."""
    at, size = 0, len(block.data)
    while size - at > longest:
        at = block.data.rfind(b"\n", at, at + longest + 1) + 1
        if not at:
            return False
    return True


def _hand(lines: Block, block: Callable[[Block], None], line: Callable[[int, str], None]) -> None:
    if lines.plain:
        block(lines)
        return
    for at, text in read_lines(io.BytesIO(lines.data), "utf-8"):
        line(at + lines.first - 1, text)


class _Behind(io.RawIOBase):
    """What was read already, then the rest of the stream."""

    def __init__(self, read: bytes, stream: BinaryIO) -> None:
        self._read, self._stream = read, stream

    def read(self, size: int = 1 << 20) -> bytes:
        got, self._read = self._read[:size], self._read[size:]
        while len(got) < size and (more := self._stream.read(size - len(got))):
            got += more
        return got
