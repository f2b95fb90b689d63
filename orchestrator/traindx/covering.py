"""What an approved option covers: the files and lines that it names. Standard library only, for the plugin's hook."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Protocol


class Placed(Protocol):
    """Anything that names the places of a change: (path, first line, last line); last < first is an insertion."""

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]: ...


def covers(fix: Placed, path: str, line: int, end_line: int) -> bool:
    """True where a change of `line`..`end_line` (end_line == line - 1: an insertion) lies in a place of the option."""
    return any(_within(place, (posixpath.normpath(path), line, end_line)) for place in fix.places)


def _within(place: tuple[str, int, int], change: tuple[str, int, int]) -> bool:
    path, first, last = place
    _, line, end_line = change
    if posixpath.normpath(path) != change[0]:
        return False
    inserts = end_line < line
    if last < first:
        return inserts and line == first
    return first <= line and end_line <= last and line <= last + 1


class Bounded(Protocol):
    """The text that a place may get."""

    @property
    def path(self) -> str: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def lines(self) -> tuple[str, ...]: ...


def content_fits(bounds: Sequence[Bounded], path: str, line: int, end_line: int, old: Sequence[str],
                 new: Sequence[str]) -> bool:
    """True where `new`, in place of the lines `line`..`end_line` that hold `old`, is what was shown.

    Of a place whose new text was shown, each new line must be a shown one, in the order shown, or the old line with a
    shown text put into it. A place without a shown text is bound by its lines alone.
    """
    here = [b for b in bounds if posixpath.normpath(b.path) == posixpath.normpath(path)
            and b.first <= max(end_line, line) and line <= max(b.last, b.first)]
    if not here:
        return True
    shown = [text for b in here for text in b.lines]
    if not new:
        return any(not b.lines for b in here)
    left = iter(shown)
    return all(any(_is_shown(text, one, old) for text in left) for one in new)


def _is_shown(text: str, line: str, old: Sequence[str]) -> bool:
    if text.split() == line.split():
        return True
    bare = text.strip()
    at = line.find(bare)
    while bare and at >= 0:
        head, tail = line[:at], line[at + len(bare):]
        if any(o.startswith(head) and o.endswith(tail) and len(head) + len(tail) <= len(o) for o in old):
            return True
        at = line.find(bare, at + 1)
    return False
