"""The terminal's page: its width, its colours, and text on as many lines as it may have."""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from traindx.safe_text import line

NARROWEST, NARROW, WIDEST = 40, 64, 120
"""Columns: a narrower terminal breaks lines itself, below the second a text gets more lines, a longer line is not
read."""
IN_A_PIPE = 100
"""Columns where there is no terminal and COLUMNS says nothing."""
GUTTER = 10
"""Columns of the words at the left of a brief page."""

OPTION = "-v"
"""How a command prints all of it; from Python that is an argument (`terminal(verbose=True)`)."""

_COLOURS = {"bold": "1", "quiet": "2", "critical": "31;1", "high": "33;1", "medium": "35", "low": "2", "info": "2",
            "good": "32;1", "added": "32", "removed": "31"}
_GOES_ON = "\u00a0…"
"""Behind a text that was cut; it never stands on a line of its own."""
_TOGETHER = re.compile(r"(?<=\d) (?=%)|(?<=[\w)\]]) (?=[-+] [\w(])|(?<=[\w)\]] [-+]) (?=[\w(])")
"""What stands between a number and its sign, and around a sign between two terms, which stay on one line."""
_BOUND = "\ue000"
"""Stands for such a space while lines are filled."""
_BEGINS = re.compile(r"#|- |\d+\. |    |   Expect: ")
"""How a line begins that does not go on with the one before."""
_MARK = re.compile(r"- |\d+\. | +")
_CLAUSES = (". ", "; ", ", ")
"""Where a text that is too long is cut, the best place first."""


def columns(stream: Any) -> int:
    """How wide a text for this stream may be: COLUMNS, else the terminal's width, else that of a pipe."""
    told = os.environ.get("COLUMNS", "")
    try:
        found = int(told) if told.isdigit() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):  # no terminal, or a stream of a caller's own
        found = 0
    return min(max(found or IN_A_PIPE, NARROWEST), WIDEST)


def coloured(stream: Any) -> bool:
    """Whether a text for this stream may hold escape codes: a terminal that knows them (not TERM=dumb), and a person
    who did not set NO_COLOR. Bold and quiet are left out with the colours: who sets it sees plain text."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def wrapped(text: str, width: int) -> list[str]:
    """A line on as many as it needs, those after the first indented two columns deeper; "" stays a line."""
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, max(width, NARROWEST), subsequent_indent=f"{indent}  ", break_long_words=False,
                         break_on_hyphens=False) or [""]


def reflowed(markdown: str, width: int) -> str:
    """A page of `explain`, which is wrapped at `IN_A_PIPE` columns, at another width; commands are never broken."""
    if width >= IN_A_PIPE:
        return markdown
    items: list[str] = []
    for row in markdown.splitlines():
        goes_on = items and items[-1].strip() and row.strip() and not _BEGINS.match(row)
        if goes_on and not items[-1].startswith(("#", "    ")):
            items[-1] += f" {row.strip()}"
        else:
            items.append(row)
    return "\n".join(part for item in items for part in _item(item, width)) + "\n"


def _item(text: str, width: int) -> list[str]:
    if text.startswith(("#", "    ")):
        return [text]
    mark = _MARK.match(text)
    return textwrap.wrap(text, width, subsequent_indent=" " * len(mark[0]) if mark else "", break_long_words=False,
                         break_on_hyphens=False) or [""]


class Page:
    """Width and colour of the terminal, how whoever reads it gets all of it, and how they type a command."""

    def __init__(self, width: int, colour: bool = False, more: str = OPTION, typed: Callable[[str], str] = str) -> None:
        self.width, self.colour, self.more, self.typed = max(width, NARROWEST), colour, more, typed

    def paint(self, text: str, look: str) -> str:
        return f"\x1b[{_COLOURS[look]}m{text}\x1b[0m" if self.colour and look in _COLOURS else text

    def heading(self, text: str, aside: str = "") -> str:
        if aside and len(text) + len(aside) + 2 > self.width:
            return "\n".join([self.paint(text, "bold"), *(self.paint(row, "quiet") for row in self.wrap(aside, "  "))])
        return self.paint(text, "bold") + (self.paint(f"  {aside}", "quiet") if aside else "")

    def wrap(self, text: object, indent: str, first: str | None = None) -> list[str]:
        """Text on as many lines as it needs; paths and commands are never broken."""
        said = _TOGETHER.sub(_BOUND, line(text))
        rows = textwrap.wrap(said, self.width, initial_indent=indent if first is None else first,
                             subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [indent]
        return [row.replace(_BOUND, " ") for row in rows]

    @property
    def scale(self) -> float:
        """Times the lines of a usual page that the same words take here: narrow terminals lose no half sentence."""
        return max(NARROW / self.width, 1.0)

    def fit(self, text: object, indent: str, first: str | None = None, *, most: int = 1, place: str = "") -> list[str]:
        """Text on at most `most` lines (of a narrow terminal more), cut at the end of a clause where one is near.

        `place` is where it was seen: behind the text where that does not say it, or was cut before it does.
        """
        if place and place in line(text):
            shown = self.fit(text, indent, first, most=most)
            if place in " ".join(shown):
                return shown
        most = math.ceil(most * self.scale)
        said, end = line(text).rstrip(), f" ({place})" if place else ""
        whole = self.wrap(said + end, indent, first)
        if len(whole) <= most:
            return whole
        words = said.split(" ")
        low, high = 1, len(words)
        while low < high:  # the most words that fit
            middle = (low + high + 1) // 2
            fits = len(self.wrap(" ".join(words[:middle]) + _GOES_ON + end, indent, first)) <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        shown = self.wrap(_at_a_clause(" ".join(words[:low])) + end, indent, first)
        return [text.replace(_GOES_ON, " …") for text in shown]

    def labelled(self, label: str, text: object, *, most: int = 1, place: str = "") -> list[str]:
        """Text with a word at its left, as a brief page has it; without a label it goes on below the one above."""
        head, *rest = self.fit(text, " " * GUTTER, f"{label:<{GUTTER}}", most=most, place=place)
        return [self.paint(label, "bold") + head[len(label):] if label else head, *rest]


def _at_a_clause(text: str) -> str:
    """The text up to the last clause that ends in its second half; else as it is. An ellipsis says that it goes on."""
    ends = (text.rfind(mark, len(text) // 2) for mark in _CLAUSES)
    at = next((found for found in ends if found > 0 and _closed(text[:found])), None)
    if at is None and not _closed(text) and text.rfind(" (") > len(text) // 2:
        at = text.rfind(" (")
    return f"{(text if at is None else text[:at]).rstrip(' ,:;.')}{_GOES_ON}"


def _closed(text: str) -> bool:
    """Whether no bracket and no quotation is left open."""
    return text.count("(") == text.count(")") and text.count("[") == text.count("]") and text.count('"') % 2 == 0


def blocks(*parts: Iterator[str]) -> str:
    """Parts with an empty line between them; empty ones leave none. Ends with a line break."""
    told = [list(part) for part in parts]
    return "\n\n".join("\n".join(lines) for lines in told if lines) + "\n"
