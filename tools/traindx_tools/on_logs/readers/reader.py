"""What a reader is: how sure it is that a source is of its format, and how it reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.encoding import encoding_of
from traindx_tools.on_logs.run import Run


@dataclass(frozen=True)
class Head:
    """The beginning of a source, as bytes and as text."""

    data: bytes
    text: str
    complete: bool
    """Whether this is all of it."""

    @property
    def lines(self) -> list[str]:
        """Its whole lines: the last one is dropped where it may be cut."""
        lines = self.text.splitlines()
        return lines if self.complete or len(lines) < 2 else lines[:-1]


def head_of(source: Source) -> Head:
    """The head of a source. Raises OSError."""
    data = source.head
    text = codecs.getincrementaldecoder(encoding_of(data))(errors="replace").decode(data)
    return Head(data, text, complete=len(data) < 60_000)


@dataclass(frozen=True)
class Reader:
    """One format.

    `sniff`: from 0 (certainly not) to 1 (certainly), from the head alone. `read`: what the source tells of the run; it
    raises OSError where the bytes cannot be had and skips, and says so in the artifact's note, what is damaged.
    """

    name: str
    sniff: Callable[[Head], float]
    read: Callable[[Source], Run]
