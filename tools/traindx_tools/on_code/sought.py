"""Whether a text can hold what a pattern looks for, told from plain pieces of text.

A pattern of alternatives costs a step at every character of a text. Which pieces a text must hold for it to match can
be read off the pattern: `nll_loss|NLLLoss\\(` matches only where `nll_loss` or `NLLLoss(` is written. The words of a
file are gathered once (`SourceFile.words`) and are a quarter of its text; most files hold none, and are never searched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_SHORTEST = 2
"""Letters of a word that are worth looking for: a single one stands in every text."""
_MOST = 40
"""Pieces that parts which follow each other may be joined to."""
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NO_PLACE = re.compile(r"\\[bBAZ]|\^|\$")
"""What matches between two characters, and takes none."""
_CODES = frozenset("xuUN0123456789")
"""How an escape of several characters begins: a code, or a group named again."""
_GROUP = re.compile(r"\((?:\?(?::|P<\w+>|<?[=!]|[a-zA-Z-]+[:)]))?")
_REPEATED = re.compile(r"(?:[?*+]|\{[^}]*\})[?+]?")


@lru_cache(maxsize=4_096)
def needed(pattern: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
    """Pieces of text of which one must be there for the pattern to match, each after the longest word in it.

    None at all where that is not known. They are in lower case where the pattern ignores case.
    """
    if pattern.flags & re.VERBOSE:
        return ()
    reader = _Reader(pattern.pattern)
    found = reader.alternatives().needed
    if found is None or reader.lost:
        return ()
    if pattern.flags & re.IGNORECASE:
        found = frozenset(w.lower() for w in found)
    least = sorted(w for w in found if not any(o in w for o in found if o != w))
    return tuple((max(_WORD.findall(piece), key=len), piece) for piece in least)


@dataclass(frozen=True)
class _Part:
    """What a part of a pattern matches: all texts, where they are few, and pieces of which each match holds one."""

    exact: frozenset[str] | None
    needed: frozenset[str] | None


_NOTHING = _Part(frozenset({""}), None)
_UNKNOWN = _Part(None, None)


class _Reader:
    """Reads a regular expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.lost = False
        """Whether something stood there that this reader does not know."""

    def alternatives(self) -> _Part:
        """What `a|b|c` matches, up to the end or the closing parenthesis."""
        ways = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            ways.append(self._sequence())
        exact = [w.exact for w in ways if w.exact is not None]
        needs = [w.needed for w in ways if w.needed is not None]
        return _Part(frozenset().union(*exact) if len(exact) == len(ways) else None,
                     frozenset().union(*needs) if len(needs) == len(ways) else None)  # fmt: skip

    def _sequence(self) -> _Part:
        """What one alternative matches: of its parts, all of which must be there, the one that says most."""
        known: list[frozenset[str]] = []
        run = frozenset({""})
        is_exact = True
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            part = self._repeated(self._one())
            if part.exact is not None and len(run) * len(part.exact) <= _MOST:
                run = frozenset(a + b for a in run for b in part.exact)
                continue
            known.append(run)
            if part.needed is not None:
                known.append(part.needed)
            is_exact, run = False, part.exact if part.exact is not None else frozenset({""})
        known = [k for k in (*known, run) if min(map(_letters, k), default=0) >= _SHORTEST]
        best = max(known, key=lambda k: (min(map(_letters, k)), -len(k)), default=None)
        return _Part(run if is_exact else None, best)

    def _one(self) -> _Part:
        """The next character, class or group."""
        if place := _NO_PLACE.match(self._pattern, self._at):
            self._at = place.end()
            return _NOTHING
        char = self._pattern[self._at]
        if char == "(":
            return self._group()
        if char == "[":
            self._class()
            return _UNKNOWN
        if char == "\\":
            char = self._pattern[self._at + 1 : self._at + 2]
            self.lost |= char in _CODES
            self._at += 2
            return _UNKNOWN if char.isalnum() else _Part(frozenset({char}), None)
        self._at += 1
        return _UNKNOWN if char == "." or not char.isascii() else _Part(frozenset({char}), None)

    def _repeated(self, part: _Part) -> _Part:
        """A part with what says how often it is there."""
        often = _REPEATED.match(self._pattern, self._at)
        if often is None:
            return part
        self._at = often.end()
        if often[0] == "?" and part.exact is not None:
            return _Part(part.exact | {""}, None)
        return _Part(None, part.exact or part.needed) if often[0][0] == "+" else _UNKNOWN

    def _class(self) -> None:
        """Step over `[...]`, in which a `]` at the start is itself."""
        self._at += 2 if self._pattern.startswith("[^", self._at) else 1
        first = True
        while self._at < len(self._pattern) and (self._pattern[self._at] != "]" or first):
            self._at += 2 if self._pattern[self._at] == "\\" else 1
            first = False
        self._at += 1

    def _group(self) -> _Part:
        """What a group matches; one that only looks around, or sets an option, takes no character."""
        kind = _GROUP.match(self._pattern, self._at)
        if kind is None or (kind[0] == "(" and self._pattern.startswith("(?", self._at)):
            self._at, self.lost = len(self._pattern), True
            return _UNKNOWN
        self._at = kind.end()
        if kind[0].endswith(")"):
            return _NOTHING
        found = self.alternatives()
        self._at += 1
        if kind[0].endswith(("=", "!")):
            return _NOTHING
        return found if kind[0] in ("(", "(?:") or kind[0].startswith("(?P<") else _UNKNOWN


def _letters(piece: str) -> int:
    return max(map(len, _WORD.findall(piece)), default=0)
