"""How the bytes of a file are written: text in which encoding, or no text."""

from __future__ import annotations

import re

_MARKS = ((b"\xff\xfe\x00\x00", "utf-32-le"), (b"\x00\x00\xfe\xff", "utf-32-be"), (b"\xff\xfe", "utf-16-le"),
          (b"\xfe\xff", "utf-16-be"))
"""Byte order marks, the longer ones first."""
WIDTHS = {"utf-32-le": 4, "utf-32-be": 4, "utf-16-le": 2, "utf-16-be": 2}
"""Encodings whose letters have more than a byte each, and how many."""
WINDOW = 4096
"""Bytes by which an encoding is known."""
CONTROL = bytes((*range(7), *range(14, 27), 28, 29, 30, 31))
"""Bytes that no text holds, zeros among them."""
SURELY_PLAIN = 16
"""Bytes without a zero that are no letters of two bytes: by chance eight Chinese ones are all signs of ASCII once in
100,000 times. Of fewer one may hold the byte of an end of a line."""
_FEWEST = 5
"""Letters from which on an encoding can be told."""
_BESIDE = frozenset("\t\n\r\x1b\x08\ufeff")
"""What is not printed and stands in logs."""


def marked(data: bytes) -> str | None:
    """The encoding that a byte order mark at the beginning tells."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 where these bytes begin with a text in it, by its mark or by what they read like in it.

    Of each such text some letters have zeros in them: those of blanks, digits and ends of lines.
    """
    window = data[:WINDOW]
    if b"\0" not in window:
        return None
    told = marked(window)
    line = window.find(b"\n") + 1
    plain = told is None and _is_plain(window[:line])
    if plain and line >= SURELY_PLAIN:
        return None
    for name, width in WIDTHS.items():
        behind = (window[at:].decode(name, "replace").partition("\n")[0] for at in (line, line + line % width))
        if plain and not all(map(is_foreign, behind)):
            continue  # a few signs and an end, then letters with a zero each
        text = window[: len(window) - len(window) % width].decode(name, "replace")
        if (told in (None, name)) and _reads_well(text, cut=len(data) > WINDOW):
            return name
    return told if len(window) < 2 * _FEWEST else None


def is_foreign(text: str) -> bool:
    """Whether a text has letters of a script of which some have no zero in UTF-16."""
    return not text.isascii() and any(c >= "\u0300" and c not in "\ufeff\ufffd" for c in text)


def _is_plain(line: bytes) -> bool:
    """Whether a line with its end is one in UTF-8."""
    try:
        return bool(line) and line.translate(None, b"\0" + CONTROL) == line and bool(line.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _reads_well(text: str, *, cut: bool) -> bool:
    """Whether the first lines of a text are letters of one script with blanks or digits between them.

    Numbers of two or four bytes that happen to be printable have no ends of lines, or no words.
    """
    end = text.find("\n", _FEWEST) + 1
    first = text[:end] if end else text.rstrip("\ufffd") if cut else text
    if len(first) < _FEWEST or "\0" in first:
        return False
    ascii_letters = len(first.encode("ascii", "ignore"))
    if ascii_letters < 0.1 * len(first):
        return False  # numbers read as letters: of each text blanks and ends of lines are ASCII
    odd = sum(not (c.isprintable() or c in _BESIDE) or c == "\ufffd" for c in first)
    others = [ord(c) >> 8 for c in first if c >= "\x80"]
    one_script = len(others) - max(map(others.count, set(others)), default=0) <= 0.15 * len(others)
    words = end > 0 or sum(c.isalnum() or c == " " for c in first) >= 0.8 * len(first)
    return words and odd <= 0.02 * len(first) and ascii_letters >= (0.1 if one_script else 0.25) * len(first)


def encoding_of(head: bytes) -> str:
    """UTF-16 or UTF-32 where a mark or the text says so (a redirect in PowerShell), else UTF-8."""
    return marked(head) or wide_encoding(head) or "utf-8-sig"


HOLE = re.compile(rb"\x00{64,}")
"""A log that was cut while its writer went on, or that a power cut left half-written, holds a long run of zeros."""
