"""The bytes of a log as UTF-8 without zeros, whatever they are written in, megabytes at a time.

A log is continued by another program in another encoding (`>>` of PowerShell), is cut while its writer keeps its place
(`copytruncate` of logrotate: a hole of zeros), lies in a file that was made as long as it may become, or has a zero at
the end of each line. A text of none of these costs the search for a zero in it.
"""

from __future__ import annotations

import errno
import io
import os
import re
from functools import lru_cache
from typing import BinaryIO

from traindx_tools.on_logs.encoding import (
    CONTROL,
    HOLE,
    SURELY_PLAIN,
    WIDTHS,
    WINDOW,
    is_foreign,
    marked,
    wide_encoding,
)

CHUNK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of a line that are kept until its end is there."""
_SHORT_HOLE = 128
"""Zeros that stand for all of a hole that is longer than a chunk."""
_ALTERNATING = re.compile(rb"(?:[^\x00]\x00){3}|(?:\x00[^\x00]){3}|(?:\x00{3}[^\x00]){2}|\xff\xfe|\xfe\xff")
"""Letters of two or four bytes, or a mark."""
_NARROW_END = {"utf-16-le": re.compile(rb"\n(?!\x00)"), "utf-16-be": re.compile(rb"(?<!\x00)\n"),
               "utf-32-le": re.compile(rb"\n(?!\x00\x00\x00)"), "utf-32-be": re.compile(rb"(?<!\x00\x00\x00)\n")}
"""An end of a line that is none in this encoding."""
_MOSTLY = 0.8
"""Share of the signs of a part in UTF-8 that are ASCII."""
_MOST_TRIES = 8
"""Places of a chunk at which another encoding is looked for: a binary file has very many."""
_AT_EDGES = re.compile(rb"\x00+(?=\r?\n)|(?<=\n)\x00+|^\x00+|\x00+$")
_CONTROL = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
_LETTERS_PER_ZERO = 8
"""Letters that a text has for each zero in it: a stray one in each line, where numbers have some in each."""
_PACKED = (b"RIFF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\x93NUMPY", b"\x89HDF", b"PK\x03\x04", b"fLaC", b"OggS",
           b"SQLite format 3", b":W&B", b"PAR1", b"ARROW1", b"ID3")
"""How files with zeros begin that are no text whatever follows: sounds, pictures, archives, arrays, records."""


@lru_cache(maxsize=32)
def is_binary(head: bytes) -> bool:
    """Whether bytes are no text in UTF-8, Latin-1, UTF-16 or UTF-32, alone or one after the other.

    Zeros are left out before: holes, and single ones as far as what stays is lines of text.
    """
    if head.startswith(_PACKED) and b"\0" in head:
        return True
    zeros = 0
    if b"\0" in head or marked(head):
        head, zeros = as_text(head)
    control = len(head) - len(head.translate(None, CONTROL))
    strange = zeros > 2 and (_LETTERS_PER_ZERO * zeros > len(head) or b"\n" not in head)
    return strange or control > max(2, len(head) // 50)


def as_text(data: bytes) -> tuple[bytes, int]:
    """All of some bytes as UTF-8, and how many zeros outside of holes were left out."""
    text = PlainText(io.BytesIO(data), data)
    return text.read(), text.zeros


class PlainText(io.RawIOBase):
    """A stream of text as UTF-8. `head`: its first bytes."""

    def __init__(self, stream: BinaryIO, head: bytes) -> None:
        self._stream = stream
        words = _is_narrow(head[:max(0, head.find(b"\0") - 1)])  # to which a line in another encoding was added
        self._wide = None if words else wide_encoding(head) or marked(head)
        self._rest, self._out, self._at = b"", bytearray(), 0
        self._ended, self._long_hole, self._torn, self._hole = False, 0, False, 0
        self._foreign: bool | None = None
        """Whether what was read of the other encoding had letters without a zero; None before there was any."""
        self.changed = self._wide is not None
        """Whether anything is not as it is stored."""
        self.zeros = 0
        """Zeros outside of holes."""
        self.holes: list[int] = []
        """Bytes of each run of zeros that text follows."""

    @property
    def stored(self) -> BinaryIO | None:
        """The stream itself, as long as it is as it is stored: whoever meets a zero in it goes back before it."""
        return None if self.changed or self._rest or self._out else self._stream

    @property
    def remark(self) -> str:
        """What a person should know of what is not there."""
        if not self.holes:
            return ""
        where = f"{len(self.holes):,} places" if len(self.holes) > 1 else "one place"
        return (f"{sum(self.holes):,} bytes of zeros at {where}: what was written there is lost (a log that was cut "
                "while its writer went on, or a machine that stopped)")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def read(self, size: int = -1, /) -> bytes:
        while not self._ended and (size < 0 or len(self._out) < size):
            self._more()
        return self._take(len(self._out) if size < 0 else size)

    def readline(self, size: int | None = -1, /) -> bytes:
        limit = -1 if size is None else size
        begin = 0
        while (end := self._out.find(b"\n", begin)) < 0 and not self._ended and not 0 <= limit <= len(self._out):
            begin = len(self._out)
            self._more()
        found = end + 1 if end >= 0 else len(self._out)
        return self._take(found if limit < 0 else min(found, limit))

    def _take(self, size: int) -> bytes:
        if size >= len(self._out):
            out = bytes(self._out)
            self._out.clear()
            return out
        out = bytes(self._out[:size])
        del self._out[:size]
        return out

    def _more(self) -> None:
        """Takes a chunk of the stream; what of it may depend on the next one is kept."""
        data = self._stream.read(CHUNK)
        self._ended = not data
        if len(data) > _SHORT_HOLE and not data[0] and data == bytes(len(data)):
            self._long_hole += len(data) + _passed_over(self._stream)
            return
        if self._long_hole:
            kept = min(_SHORT_HOLE, self._long_hole)
            data = bytes(kept) + data
            self._long_hole -= kept
        data = self._rest + data
        self._rest = b""
        while data:
            used = self._take_wide(data) if self._wide else self._take_narrow(data)
            if not used:
                break
            data = data[used:]
        self._rest = data if not self._ended else b""

    def _take_narrow(self, data: bytes) -> int:
        """Takes UTF-8 up to another encoding, or whole lines; how many bytes."""
        end = len(data) if self._ended else data.rfind(b"\n") + 1
        end = end or (len(data) if len(data) > _LONGEST else 0)
        if b"\0" not in data:
            self._out += data[:end]
            self._torn = not data[:end].endswith(b"\n") if end else self._torn
            return end
        self.changed = True
        at = self._wide_from(data)
        end = end if at is None else at
        self._clean(data[:end])
        return self._take_wide(data) if self._wide and not end else end

    def _wide_from(self, data: bytes) -> int | None:
        """Where another encoding begins, and which is kept; or where one may begin that more bytes are needed for."""
        found = _ALTERNATING.search(data)
        for _ in range(_MOST_TRIES):
            if found is None:
                return None
            line = data.rfind(b"\n", 0, found.start() + 1) + 1
            if not self._ended and len(data) - line < WINDOW:
                return line
            for at in _beginnings(data, line, found):
                self._wide = _wide_at(data[at:at + WINDOW + 1])
                if self._wide is not None:
                    return at
            line_end = data.find(b"\n", found.end())
            found = _ALTERNATING.search(data, line_end) if line_end >= 0 else None
        return None

    def _take_wide(self, data: bytes) -> int:
        """Takes whole lines of the encoding, up to where UTF-8 begins again; how many bytes."""
        assert self._wide is not None, "an encoding"
        width, whole = WIDTHS[self._wide], len(data)
        newline = "\n".encode(self._wide)
        narrow = self._narrow_from(data, newline)
        if narrow is not None:
            end = narrow
        else:
            last = _last_aligned(data, newline, whole)
            end = whole - whole % width if self._ended or (not last and whole > _LONGEST) else last
        text = data[:end].decode(self._wide, "replace").replace("\ufeff", "")
        self._clean(text.encode("utf-8", "replace"), width)
        self._foreign = bool(self._foreign) or is_foreign(text) if text else self._foreign
        if narrow is not None:
            self._wide = self._foreign = None
            return end or self._take_narrow(data)
        return whole if self._ended else end

    def _narrow_from(self, data: bytes, newline: bytes) -> int | None:
        """Where UTF-8 begins again: at a line that has neither a zero nor a control character in it."""
        assert self._wide is not None, "an encoding"
        searched = data if self._ended else data[:-len(newline)]
        ends = [m.start() for m in _NARROW_END[self._wide].finditer(searched)][:1000]
        for end in [*ends, *([len(data)] if self._ended else [])]:
            begin = _last_aligned(data, newline, end)
            line = data[begin:end]
            before = data[:begin].decode(self._wide, "replace")
            plain = not is_foreign(before) and (self._foreign is False or (bool(begin) and self._foreign is None))
            few = 4 if plain else SURELY_PLAIN
            if len(line.strip()) >= few and not _CONTROL.search(line):
                return begin
            if (at := _narrow_within(line, self._wide)) is not None:
                return begin + at
        return None

    def _clean(self, data: bytes, width: int = 1) -> None:
        """Takes text without its zeros; `width`: bytes that each was."""
        begin = 0
        for run in HOLE.finditer(data) if b"\0" in data else ():
            self._say(data[begin:run.start()])
            self._hole += (run.end() - run.start()) * width + self._long_hole
            self._long_hole, begin = 0, run.end()
        self._say(data[begin:])

    def _say(self, data: bytes) -> None:
        """Takes a part of a text that no hole is in; one before it tore the line, unless it stood between two."""
        bare = data
        if b"\0" in data:
            bare = _AT_EDGES.sub(b"", data).replace(b"\0", b" ")
            self.zeros += data.count(b"\0")
        if not bare:
            return
        if self._hole:
            self.holes.append(self._hole)
            self._hole = 0
            self._out += b"\r" if self._torn else b""  # the same line goes on, and reads as one that is drawn anew
        self._out += bare
        self._torn = not bare.endswith(b"\n")


def _wide_at(window: bytes) -> str | None:
    """The encoding that begins with some bytes; it may end within them, without an end of its line."""
    last = window.rfind(b"\0") + 1
    ends = (window, window[:last], window[:last + 1]) if last < len(window) <= WINDOW else (window,)
    return next((found for part in ends if (found := wide_encoding(part)) is not None), None)


def _beginnings(data: bytes, line: int, found: re.Match[bytes]) -> tuple[int, ...]:
    """Where a text of another encoding may begin, the likeliest first: at the beginning of a line, of whose
    first letter zeros may be a part; behind a hole; in the midst of a line that had no end."""
    hole = max((m.end() for m in HOLE.finditer(data, line, found.end())), default=line)
    zeros = len(data[hole:hole + 4]) - len(data[hole:hole + 4].lstrip(b"\0"))
    if hole == line:
        glued = _before_letters(data, line, found.start())
        return (glued, hole, found.start()) if _is_narrow(data[line:glued]) else (hole, hole + zeros, found.start())
    return (hole - 1, hole, found.start()) if (hole - line) % 2 else (hole, hole - 1, found.start())


def _is_narrow(text: bytes) -> bool:
    """Whether a part of a line is words in UTF-8, to which a text of another encoding was added."""
    if len(text) < SURELY_PLAIN or b" " not in text or b"\0" in text or _CONTROL.search(text):
        return False
    return sum(c.isascii() for c in text.decode("utf-8", "replace")) >= _MOSTLY * len(text)


def _before_letters(data: bytes, line: int, at: int) -> int:
    """Where letters of two bytes begin that have no zeros, before some that have: those of a script of its own have a
    control character in each."""
    for high in (1, 0):
        begin = at
        while begin - 2 >= line and _CONTROL.match(data[begin - 2 + high:begin - 1 + high]):
            begin -= 2
        if begin < at:
            return begin
    return at


def _narrow_within(line: bytes, wide: str) -> int | None:
    """Where UTF-8 begins in the midst of a line that the other encoding has left without an end; None where it has one.

    Letters without a zero may be those of a script of its own: by chance they are hardly ever all signs of ASCII.
    """
    last = line.rfind(b"\0") + 1
    at = last + (wide.endswith("be") if last else 0)
    return at if last and not at % WIDTHS[wide] and _is_narrow(line[at:]) else None


def _last_aligned(data: bytes, newline: bytes, end: int) -> int:
    """Behind the last end of a line before `end` that begins at a multiple of its width."""
    width = len(newline)
    at = data.rfind(newline, 0, end)
    while at >= 0 and at % width:
        at = data.rfind(newline, 0, at + width - 1)
    return at + width if at >= 0 else 0


def _passed_over(stream: BinaryIO) -> int:
    """Goes to the next data of a sparse file; how many bytes that was."""
    if not (isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO) and hasattr(os, "SEEK_DATA")):
        return 0
    at, file = stream.tell(), stream.raw.fileno()
    before = os.lseek(file, 0, os.SEEK_CUR)
    try:
        data = os.lseek(file, at, os.SEEK_DATA)
    except OSError as none:  # none behind it, or a file system that does not say so
        data = os.fstat(file).st_size if none.errno == errno.ENXIO else at
    os.lseek(file, before, os.SEEK_SET)
    stream.seek(max(at, data))
    return max(0, data - at)


def first_behind_zeros(stream: BinaryIO, size: int) -> bytes:
    """The first bytes of a stream that follow a hole it stands in; none where nothing does."""
    while (data := stream.read(CHUNK)) and data == bytes(len(data)):
        _passed_over(stream)
    data = data.lstrip(b"\0")
    return data[:size] if len(data) >= size else data + stream.read(size - len(data))
