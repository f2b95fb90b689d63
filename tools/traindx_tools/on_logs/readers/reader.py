"""What a reader is: how sure it is that a source is of its format, and how it reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.lines import MAX_LINE, WIDEST
from traindx_tools.on_logs.run import Run

WIDE = 1_000
"""Delimiters in the first bytes from which on they may be lines of a table, or records of JSON, that are longer than
all other lines."""
WIDE_LINES = 4
"""Lines of such a table by which it is known: its header, two rows and one that may be cut; or records."""


@dataclass(frozen=True)
class Head:
    """The beginning of a source, as bytes and as text."""

    data: bytes
    text: str
    complete: bool
    """Whether this is all of it."""

    @property
    def lines(self) -> list[str]:
        """Its whole lines: the last one is dropped where it may be cut."""
        lines = self.text.splitlines()
        return lines if self.complete or len(lines) < 2 else lines[:-1]


def head_of(source: Source) -> Head:
    """The head of a source: of a table of thousands of columns, or records of as many members, some whole lines.

    Raises OSError.
    """
    binary = is_binary(source.head)
    data = source.head if binary else source.text_head
    if _begins_wide_table(data):
        with source.text() as stream:
            data = b"".join(stream.readline(WIDEST) for _ in range(WIDE_LINES))
    text = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode(data)
    raw = source.head if binary or b"\0" in source.head else data  # what a format begins with may hold zeros
    return Head(raw, text, complete=len(data) < 60_000)


def _begins_wide_table(data: bytes) -> bool:
    """Whether these first bytes end in the first lines of a table or records, before there are enough of them to know
    it."""
    begin = data.lstrip()[:1]
    return (len(data) > MAX_LINE // 2 and data.count(b"\n") < WIDE_LINES and begin not in (b"", b"[", b"<", b"%")
            and b"\0" not in data and max(map(data.count, (b",", b"\t", b";", b"|"))) >= WIDE)


@dataclass(frozen=True)
class Reader:
    """One format.

    `sniff`: from 0 (certainly not) to 1 (certainly), from the head alone. `read`: what the source tells of the run; it
    raises OSError where the bytes cannot be had and skips, and says so in the artifact's note, what is damaged.
    """

    name: str
    sniff: Callable[[Head], float]
    read: Callable[[Source], Run]
