"""Text from logs and code made safe to show: it is data, and must not format, colour or structure what quotes it."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_HALF = re.compile(r"[\ud800-\udfff]")
"""Half of a pair: what Python makes of a byte in a file name that is no UTF-8. It cannot be written anywhere."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SPACE = re.compile(r"\s+")

MOST = 4000
"""Characters of one quoted text that are shown."""


def block(text: object, most: int = MOST) -> str:
    """Lines kept; terminal sequences, control and direction characters removed; bounded."""
    plain = _HALF.sub("\ufffd", str(text))
    plain = _CONTROL.sub("", _ANSI.sub("", plain.replace("\r\n", "\n").replace("\r", "\n")))
    return plain if len(plain) <= most else plain[: most - 2].rstrip() + " …"


def line(text: object, most: int = MOST) -> str:
    """The same on one line, so that a quoted line break starts no heading, list or prompt."""
    return block(_SPACE.sub(" ", str(text)).strip(), most)


def inline(text: object, most: int = MOST) -> str:
    """`line` for Markdown: what would open an HTML tag is escaped."""
    return _TAG.sub(r"\\<", line(text, most))


def fence(text: object) -> str:
    """A run of backticks longer than any in the text: nothing in it can close the block."""
    longest = max((len(run) for run in re.findall(r"`+", str(text))), default=0)
    return "`" * max(3, longest + 1)
