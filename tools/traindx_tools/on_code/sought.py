"""Whether a text can hold what a pattern looks for, told from its words alone.

A pattern of alternatives costs a step at every character of a text. Which words a text must hold for it to match can be
read off the pattern: `nll_loss|NLLLoss` matches only where one of the two is written. The words of a file are gathered
once (`SourceFile.words`) and are a quarter of its text; most files hold none, and are never searched.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SHORTEST = 2
"""Letters of a word that are worth looking for: a single one stands in every text."""
_WORD = re.compile(r"[A-Za-z0-9_]+")
_MANY = "?*{"
"""What makes the thing before it one that need not be there."""
_CODES = frozenset("xuUN0123456789")
"""How an escape of several characters begins: a code, or a group named again."""


@lru_cache(maxsize=4_096)
def needed(pattern: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
    """Pieces of text of which one must be there for the pattern to match, each after the longest word in it.

    None at all where that is not known. They are in lower case where the pattern ignores case.
    """
    reader = _Reader(pattern.pattern)
    found = reader.alternatives()
    if found is None or reader.lost or pattern.flags & re.VERBOSE:
        return ()
    if pattern.flags & re.IGNORECASE:
        found = {w.lower() for w in found}
    least = sorted(w for w in found if not any(o in w for o in found if o != w))
    return tuple((max(_WORD.findall(piece), key=len), piece) for piece in least)


def _letters(piece: str) -> int:
    return max(map(len, _WORD.findall(piece)), default=0)


class _Reader:
    """Reads a regular expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.lost = False
        """Whether something stood there that this reader does not know."""

    def alternatives(self) -> set[str] | None:
        """What one of `a|b|c` needs, up to the end or the closing parenthesis; None where nothing is needed."""
        found: set[str] | None = set()
        while True:
            one = self._sequence()
            found = None if one is None or found is None else found | one
            if self._peek() != "|":
                return found
            self._at += 1

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _sequence(self) -> set[str] | None:
        """The best of what the parts of one alternative need, all of which must be there."""
        known: list[set[str]] = []
        run = ""
        while (char := self._peek()) and char not in "|)":
            if char == "\\":
                char = self._pattern[self._at + 1 : self._at + 2]
                self.lost |= char in _CODES
                self._at += 2
                char = "" if char.isalnum() else char
            elif char == "(":
                inner = self._group()
                if inner is not None and not self._may_be_left_out():
                    known.append(inner)
                char = ""
            elif char == "[":
                self._class()
                char = ""
            else:
                self._at += 1
                char = "" if char in ".^$" else char
            if char and char.isascii() and not self._may_be_left_out():
                run += char
                if self._peek() != "+":
                    continue
            if run:
                known.append({run})
            run = ""
            self._quantifier()
        if run:
            known.append({run})
        known = [k for k in known if k and min(map(_letters, k)) >= _SHORTEST]
        return max(known, key=lambda k: (min(map(_letters, k)), -len(k)), default=None)

    def _may_be_left_out(self) -> bool:
        return bool(self._peek()) and self._peek() in _MANY

    def _quantifier(self) -> None:
        if self._peek() == "{":
            self._at = self._pattern.find("}", self._at) + 1 or len(self._pattern)
        while self._peek() and self._peek() in "?*+":
            self._at += 1

    def _class(self) -> None:
        """Step over `[...]`, in which a `]` at the start is itself."""
        self._at += 1
        if self._peek() == "^":
            self._at += 1
        first = True
        while (char := self._peek()) and (char != "]" or first):
            first = False
            self._at += 2 if char == "\\" else 1
        self._at += 1

    def _group(self) -> set[str] | None:
        """What a group needs; None of one that only looks around or sets an option."""
        self._at += 1
        needs = True
        if self._peek() == "?":
            kind = re.match(r"\?(?::|P<\w+>|<?[=!]|P=\w+|[a-zA-Z-]+[:)]|#[^)]*)", self._pattern[self._at :])
            if kind is None:
                self._at, self.lost = len(self._pattern), True
                return None
            self._at += kind.end()
            if kind[0].endswith(")"):
                return None
            needs = kind[0] == "?:" or kind[0].startswith("?P<")
        found = self.alternatives()
        self._at += 1
        return found if needs else None
