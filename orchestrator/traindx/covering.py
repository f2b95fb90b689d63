"""What an approved option covers: the files and lines that it names. Standard library only, for the plugin's hook."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import NamedTuple, Protocol


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


class Edited(Protocol):
    """One edit of an approved option: the file and the text that it replaces."""

    @property
    def path(self) -> str: ...
    @property
    def original(self) -> str: ...


class Approved(Placed, Protocol):
    """An approved option: `model.Fix`, or what the plugin's hook keeps of the diagnosis that a person was shown."""

    @property
    def option(self) -> str: ...
    @property
    def edits(self) -> Sequence[Edited]: ...
    @property
    def bound(self) -> Sequence[Bounded]: ...


class Change(NamedTuple):
    """Lines that are replaced: `old` begins at `line`, and `new` comes in its place."""

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def end_line(self) -> int:
        """The last line that goes; `line` - 1 for an insertion."""
        return self.line + len(self.old) - 1


SHOWN, DESCRIBED, OUTSIDE = "shown", "described", "outside"
"""What an approved option says of a change: its text was shown, its place was named in words alone, or neither."""


def said_of(fix: Approved, path: str, change: Change, before: Sequence[str]) -> str:
    """What the option says of this change of a file that held the lines `before`.

    A place whose new text was shown may get that text and no other. A place without one was approved in words: which
    text fits them is nothing that can be checked, so a person has to see it.
    """
    places = [p for p in fix.places if _within(p, (posixpath.normpath(path), change.line, change.end_line))]
    places = places or _moved(fix, path, change.old, before)
    bound = {place: [b for b in fix.bound if (b.path, b.first, b.last) == place] for place in places}
    if _fits([b for shown in bound.values() for b in shown], change):
        return SHOWN
    return DESCRIBED if any(not shown for shown in bound.values()) else OUTSIDE


def _moved(fix: Approved, path: str, old: Sequence[str], before: Sequence[str]) -> list[tuple[str, int, int]]:
    """Lines move while several edits are made: text that an edit names is recognized where it stands now."""
    changed = "\n".join(old)
    once = f"\n{chr(10).join(before)}\n".count(f"\n{changed}\n") == 1
    if not (changed.strip() and once):
        return []
    return [place for place, e in zip(fix.places, fix.edits, strict=False)
            if e.path == path and f"\n{changed}\n" in f"\n{e.original}\n"]


def _fits(bounds: Sequence[Bounded], change: Change) -> bool:
    """True where the new lines are shown ones, in the order shown, or the old line with a shown text put into it."""
    if not change.new:
        return any(not b.lines or _without(b, change.old) for b in bounds)
    left = iter([text for b in bounds for text in b.lines])
    return bool(bounds) and all(any(_is_shown(text, one, change.old) for text in left) for one in change.new)


def _without(bound: Bounded, old: Sequence[str]) -> bool:
    """True where several lines were shown for the place, and none of these is among them."""
    return len(bound.lines) > 1 and not {line.strip() for line in old} & {line.strip() for line in bound.lines}


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
