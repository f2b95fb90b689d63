"""A line of a log freed of what terminals and launchers put around it: colours, carriage returns, rank prefixes.

Launchers mix the output of many processes line by line. Each prefix names a stream, and a traceback is put together
again from the lines of one stream.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 16_384
"""Characters of one line that are looked at: the rest of a 100 MB line says nothing more about the error."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")

_STREAMS = re.compile(
    r"""\[rank\ ?(?P<torch>\d{1,6})\]:?[ ]?                      # torch >= 2.2:  [rank1]: Traceback
      | \[default(?P<tee>\d{1,6})\]:[ ]?                       # torchrun --tee
      | \[\d+,(?P<mpi>\d{1,6})\]<std(?:err|out)>:[ ]?          # mpirun --tag-output
      | (?P<srun>\d{1,6}):[ ]                                  # srun --label
      | \[?[Rr](?:ank|ANK)[ _:=#]{0,2}(?P<own>\d{1,6})\]?[ ]?[:|][ ]?  # written by the training script itself
      | \[pod/(?P<pod>[\w.-]{1,253})[/ ][\w.-]{1,63}\][ ]?         # kubectl logs --prefix
      | \((?P<ray>[\w:. ]{0,80}pid=\d+[^)\n]{0,80})\)[ ]?      # Ray actors and tasks
    """,
    re.VERBOSE,
)
_NUMBERED = ("torch", "tee", "mpi", "srun", "own")
_FIRST_CHARACTERS = frozenset("[(0123456789rR")


class Line(NamedTuple):
    """One line of one stream. `stream` is None for lines without a prefix; `number` is 1-based in the log."""

    number: int
    text: str
    stream: str | None = None
    rank: int | None = None


def clean(number: int, text: str) -> Line:
    """The line without colours, overwritten progress bars and launcher prefix, at most `LONGEST` characters long."""
    return _split(number, _plain(text))


def _plain(text: str) -> str:
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = text[text.rfind("\r") + 1 :]
    text = text[:LONGEST]
    return _ANSI.sub("", text) if "\x1b" in text else text


def _split(number: int, text: str) -> Line:
    if not text or text[0] not in _FIRST_CHARACTERS:
        return Line(number, text)
    match = _STREAMS.match(text)
    if match is None:
        return Line(number, text)
    rank = next((int(match[name]) for name in _NUMBERED if match[name]), None)
    stream = match["ray"] or match["pod"] or f"{match.lastgroup}:{rank}"
    return Line(number, text[match.end() :], stream, rank)
