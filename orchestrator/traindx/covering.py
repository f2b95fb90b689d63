"""What an approved option covers: the files and lines that it names. Standard library only, for the plugin's hook."""

from __future__ import annotations

import posixpath
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
