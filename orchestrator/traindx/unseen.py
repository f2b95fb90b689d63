"""Characters that nobody sees: what steers a terminal, turns a line round or takes no room.

Where a person approves a text, such a character stands as its escape: a view that drops it shows another text than the
one that is written. The standard library alone: the gate's hooks ask it too.
"""

from __future__ import annotations

import re
import unicodedata

IGNORABLE = ("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
             "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff")
"""Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), and the interlinear marks U+FFF9 to U+FFFB:
drawn as nothing at all. For a class of a regular expression."""

_IGNORED = re.compile(f"[{IGNORABLE}\u2800]")
"""U+2800, the empty braille cell, is drawn, as nothing."""
_LAID_OUT = "\t\n"


def escaped(text: str, keep: str = _LAID_OUT) -> str:
    """The text with an escape for each character that nobody sees; tabs and line ends stay, or what `keep` holds."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if _unseen(c) and c not in keep else c for c in text)


def unseen_in(text: str, keep: str = _LAID_OUT) -> tuple[str, ...]:
    """The characters of the text that nobody sees, each once, as `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    found = dict.fromkeys(c for c in text if _unseen(c) and c not in keep)
    return tuple(f"U+{ord(c):04X} {unicodedata.name(c, '')}".rstrip() for c in found)


def _unseen(character: str) -> bool:
    return not character.isprintable() or _IGNORED.match(character) is not None
