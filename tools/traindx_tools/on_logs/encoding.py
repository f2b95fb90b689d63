"""How the bytes of a file are written: text in which encoding, or no text."""

from __future__ import annotations

import re

_MARKS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"),
          (b"\xfe\xff", "utf-16"))
"""Byte order marks, the longer ones first."""
_PRINTABLE = frozenset(b"\t\n\r\x1b") | frozenset(range(32, 127))


def encoding_of(head: bytes) -> str:
    """UTF-16 or UTF-32 where a mark or the zeros between the letters say so (a redirect in PowerShell), else UTF-8."""
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if marked is not None or len(head) < 16:
        return marked or "utf-8-sig"
    first, second = head[0:4096:2], head[1:4096:2]
    for letters, zeros, name in ((first, second, "utf-16-le"), (second, first, "utf-16-be")):
        if zeros.count(0) > 0.9 * len(zeros) and sum(b in _PRINTABLE for b in letters) > 0.95 * len(letters):
            return name
    return "utf-8-sig"


_CONTROL = bytes((*range(7), *range(14, 27), 28, 29, 30, 31))
_ZEROS = bytes(64)
_HOLE = re.compile(rb"\x00{64,}")
"""A log that was cut while its writer went on, or that a power cut left half-written, holds a long run of zeros."""


def is_binary(head: bytes) -> bool:
    """Whether bytes are no text in UTF-8, Latin-1, UTF-16 or UTF-32."""
    if encoding_of(head) != "utf-8-sig":
        return False
    head = _HOLE.sub(b"", head) if _ZEROS in head else head
    control = len(head) - len(head.translate(None, _CONTROL))
    return control > max(2, len(head) // 50)
