"""Lines of a log as a person would have seen them: bounded, without escape codes, one for each redraw of a bar."""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAX_LINE = 64 * 1024
"""Characters kept of one line; the rest of a longer one is passed over."""
WIDEST = 4 << 20
"""Bytes of a line of a table: one of 20,000 columns has half a megabyte."""
_CHUNK = 1 << 20
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_]|\(B)")
_REDRAW = re.compile(r"\x08{2,}\r?|\r\x08*")
_ERASED = re.compile(r"[^\x08]\x08")


@dataclass
class LineStats:
    """What was met while reading."""

    lines: int = 0
    cut: int = 0
    """Lines longer than `MAX_LINE`."""


def of_lost(damaged: int, stats: LineStats) -> str:
    """What a person is told of lines of a table, or of records, that were lost; "" where none was."""
    damaged -= stats.cut  # a line that was cut is no whole row
    return "; ".join(told for told in (
        f"{damaged} damaged lines skipped" if damaged > 0 else "",
        f"{stats.cut} lines longer than {WIDEST >> 20} MiB were not read" if stats.cut else "") if told)


def read_lines(stream: BinaryIO, encoding: str, stats: LineStats | None = None) -> Iterator[tuple[int, str]]:
    """Pairs of a line's number, 1-based, and its text without the end.

    A carriage return or a run of backspaces redraws a line: each drawing is a text of its own with the same number.
    Bytes that are no text become U+FFFD. Memory stays bounded whatever the length of a line.
    """
    stats = stats or LineStats()
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    number, rest, cutting = 1, "", False
    while True:
        data = stream.read(_CHUNK)
        text = rest + decoder.decode(data, final=not data)
        if "\r\n" in text:
            text = text.replace("\r\n", "\n")
        plain = not any(sign in text for sign in "\x1b\r\x08")
        pieces = text.split("\n")
        rest = pieces.pop() if data else ""
        for piece in pieces:
            if cutting:
                cutting = False
            elif piece and plain and len(piece) <= MAX_LINE:
                yield number, piece
            elif piece:
                yield from _drawings(number, piece, stats)
            number += 1
        if not data:
            break
        if len(rest) > MAX_LINE and not cutting:
            rest, cutting = yield from _partial(number, rest, stats)
        elif cutting:
            rest = ""
    stats.lines = max(number - 1, 0)


def _partial(number: int, text: str, stats: LineStats) -> Generator[tuple[int, str], None, tuple[str, bool]]:
    """Yields the finished drawings of an unfinished long line; returns what is still open and whether to cut it."""
    at = max(text.rfind("\r", 0, len(text) - 1), text.rfind("\x08\x08", 0, len(text) - 1))
    if at > 0:
        yield from _drawings(number, text[:at], stats)
        return text[at:], False
    stats.cut += 1
    yield from _drawings(number, text[:MAX_LINE], stats, counted=True)
    return "", True


def _drawings(number: int, text: str, stats: LineStats, counted: bool = False) -> Iterator[tuple[int, str]]:
    if "\x1b" in text:
        text = ESCAPE.sub("", text)
    if "\r" in text or "\x08" in text:
        for part in _REDRAW.split(text):
            while "\x08" in part and _ERASED.search(part):
                part = _ERASED.sub("", part)
            if part.strip("\x08 "):
                yield number, _bounded(part, stats, counted)
    elif text:
        yield number, _bounded(text, stats, counted)


def _bounded(text: str, stats: LineStats, counted: bool) -> str:
    if len(text) <= MAX_LINE:
        return text
    stats.cut += not counted
    return text[:MAX_LINE]
