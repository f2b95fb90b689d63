"""Names of the user's own for what rules judge: "Kosten=loss", where a log calls its loss what nobody else does.

The words are replaced while the bytes are read, so that every format understands them; what is binary is renamed by its
series afterwards.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import BinaryIO, cast

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.counters import counter_kind
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.run import Run, Series

_CHUNK = 1 << 20
KNOWN = "loss, val_loss, accuracy, val_accuracy, learning_rate, grad_norm, reward, step, epoch"
"""Names that are always understood, for messages."""


def checked(names: Mapping[str, str]) -> dict[str, str]:
    """The names, where each is one word or phrase and stands for something that is known.

    Raises UnreadableInput.
    """
    for own, meant in names.items():
        if not own.strip() or len(own) > 80 or "\n" in own:
            raise UnreadableInput(f"{own[:80]!r} is no name of a metric: expected one word or a short phrase, as it "
                                  "stands in the log.")
        if not identify(meant).known and counter_kind(meant.lower()) is None:
            raise UnreadableInput(f"{own!r} cannot stand for {meant[:80]!r}, which no rule knows. Expected, for "
                                  f"example, one of: {KNOWN}.")
    return {own.strip(): meant.strip() for own, meant in names.items()}


@dataclass(frozen=True)
class RenamedSource(Source):
    """A source in which words are replaced while it is read. Lines longer than a megabyte may be cut between them."""

    names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def text_head(self) -> bytes:
        """The first bytes, with the names replaced. Raises OSError."""
        first = super().text_head
        return first if is_binary(self.head) else self._replaced(first)

    def text(self) -> BinaryIO:
        """The bytes, with the names replaced. Raises OSError."""
        stream = super().text()
        return stream if is_binary(self.head) else cast(BinaryIO, _Replaced(stream, self))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        words = sorted(self.names, key=len, reverse=True)
        return re.compile(rb"(?<![A-Za-z0-9])(?:" + b"|".join(re.escape(w.encode()) for w in words)
                          + rb")(?![A-Za-z0-9])")

    def _replaced(self, data: bytes) -> bytes:
        return self._pattern.sub(lambda m: self.names[m.group().decode()].encode(), data)


class _Replaced(io.RawIOBase):
    """Whole lines of a stream, with the names of a source replaced."""

    def __init__(self, stream: BinaryIO, source: RenamedSource) -> None:
        self._stream, self._source, self._rest = stream, source, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        while size < 0 or len(self._rest) < size:
            data = self._stream.read(_CHUNK)
            if not data:
                break
            data += self._stream.readline(_CHUNK) if not data.endswith(b"\n") else b""
            self._rest += self._source._replaced(data)
        cut = len(self._rest) if size < 0 else size
        out, self._rest = self._rest[:cut], self._rest[cut:]
        return out

    def close(self) -> None:
        self._stream.close()
        super().close()


def renamed_source(source: Source, names: Mapping[str, str]) -> Source:
    """The source with the names replaced; itself where there are none."""
    if not names:
        return source
    return RenamedSource(source.name, source.local, source.data, source.filesystem, sections=source.sections,
                         names=names)


_NUMBER = rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_BARE = re.compile(rb"^[ \t]*" + _NUMBER + rb"(?:[ \t,;|]+" + _NUMBER + rb")+[ \t,;|]*\r?$",
                   re.MULTILINE | re.IGNORECASE)
_PARTS = re.compile(rb"[^ \t,;|\r]+")
FEWEST_ROWS = 3
"""Lines of numbers alone from which on they are rows that a print wrote."""


@dataclass(frozen=True)
class LabelledSource(RenamedSource):
    """A source whose lines of so many numbers get names: "9 0.53" reads "epoch 9 loss 0.53"."""

    columns: tuple[str, ...] = ()

    def _replaced(self, data: bytes) -> bytes:
        return _BARE.sub(self._labelled, super()._replaced(data) if self.names else data)

    def _labelled(self, row: re.Match[bytes]) -> bytes:
        values = _PARTS.findall(row.group())
        if len(values) != len(self.columns):
            return row.group()
        return b" ".join(b"%s=%s" % (n.encode(), v) for n, v in zip(self.columns, values, strict=True))


def rows_of(source: Source, count: int) -> int:
    """How many lines at the head of a source are so many numbers and nothing else. Raises OSError."""
    return sum(len(_PARTS.findall(row.group())) == count for row in _BARE.finditer(source.text_head))


def renamed_series(run: Run, names: Mapping[str, str]) -> Run:
    """The run whose series have the names that a person gave them: those of binary files, which keep their own."""
    return replace(run, series=tuple(_renamed(s, names) for s in run.series)) if names else run


def _renamed(s: Series, names: Mapping[str, str]) -> Series:
    meant = names.get(s.original)
    if meant is None:
        return s
    name = identify(meant)
    return replace(s, name=name.canonical, group=name.group or s.group)
