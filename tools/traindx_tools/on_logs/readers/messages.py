"""Lines of a log as a collector ships them: a record of JSON each, with the line as one of its texts.

Docker, Loki, Vector, Fluentd and Cloud Logging call it `log`, `line`, `message` or `textPayload`; whatever its name, it
is the text that differs from record to record and holds numbers. Where the records are of several processes (`pod`,
`host`), another text says whose each is.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast

from traindx_tools.on_logs.artifacts import HEAD_BYTES, Source
from traindx_tools.on_logs.readers.lines import MAX_LINE

_SHARE = 0.8
"""Of the first records that have the text."""
_FEWEST = 3
_MOST_WRITERS = 512
_NUMBERS = re.compile(r"\d+")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?|[\d.:-]+")
_HOLDS = re.compile(r"[A-Za-z].*\d")
"""A text with words and a number."""


@dataclass(frozen=True)
class MessageSource(Source):
    """A source whose lines are one text of its records. `message`, `writer`: names of texts, outermost first."""

    message: tuple[str, ...] = ()
    writer: tuple[str, ...] = ()

    def text(self) -> BinaryIO:
        """The messages, one a line, with whose it is before it. Raises OSError."""
        return cast(BinaryIO, _Messages(super().text(), self))

    @cached_property
    def text_head(self) -> bytes:
        """The first bytes of `text`. Raises OSError."""
        with self.text() as stream:
            return stream.read(HEAD_BYTES)

    def line_of(self, line: bytes) -> bytes:
        """What a record says, in one line; an empty one where it says nothing."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return line.rstrip(b"\r\n")
        said = _texts(record).get(self.message, "") if isinstance(record, dict) else ""
        whose = _texts(record).get(self.writer) if self.writer and isinstance(record, dict) else None
        shown = said.rstrip("\r\n").replace("\n", " ")
        return (f"[pod/{whose}/log] {shown}" if whose else shown).encode("utf-8", "replace")


class _Messages(io.RawIOBase):
    def __init__(self, stream: BinaryIO, source: MessageSource) -> None:
        self._stream, self._source, self._rest = stream, source, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while (size < 0 or length < size) and (line := self._stream.readline(4 * MAX_LINE)):
            parts.append(self._source.line_of(line) + b"\n")
            length += len(parts[-1])
        data = b"".join(parts)
        cut = len(data) if size < 0 else size
        self._rest = data[cut:]
        return data[:cut]

    def close(self) -> None:
        self._stream.close()
        super().close()


def as_messages(source: Source) -> MessageSource | None:
    """The source as the messages in its records; None where they have none. Raises OSError."""
    records = [_texts(r) for r in _records(source.text_head)]
    names = dict.fromkeys(name for r in records for name in r)
    common = {n: [r[n] for r in records if n in r] for n in names}
    common = {n: some for n, some in common.items() if len(some) >= max(_FEWEST, _SHARE * len(records))}
    told = {n: len({_NUMBERS.sub("0", t) for t in some}) for n, some in common.items()
            if sum(_HOLDS.search(t) is not None and not _INSTANT.fullmatch(t) for t in some) >= 0.5 * len(some)
            and len(set(some)) > 0.5 * len(some)}
    if not told:
        return None
    message = max(told, key=lambda n: (told[n], sum(map(len, common[n]))))
    writer = next((n for n, some in common.items() if n != message and _are_writers(some)), ())
    return MessageSource(source.name, source.local, source.data, source.filesystem, source.above, source.forms,
                         source.sections, message=message, writer=writer)


def _are_writers(texts: list[str]) -> bool:
    """Whether texts are a few names that differ in their number alone, each coming again."""
    once = set(texts)
    return (2 <= len(once) <= min(_MOST_WRITERS, len(texts) // 2) and len({_NUMBERS.sub("", t) for t in once}) == 1
            and all(re.fullmatch(r"[A-Za-z][\w.]*-\d{1,6}", t) for t in once))


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.split(b"\n")[:400]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _texts(record: dict[str, Any], depth: int = 3) -> dict[tuple[str, ...], str]:
    """The texts of a record, also of objects in it."""
    out: dict[tuple[str, ...], str] = {}
    for name, value in record.items():
        if isinstance(value, str):
            out[(name,)] = value
        elif isinstance(value, dict) and depth:
            out.update({(name, *inner): text for inner, text in _texts(value, depth - 1).items()})
    return out
