"""Spans in texts, as fields count them: where they begin and end, in characters, bytes or another unit.

A span that was counted as its text is begins and ends at the edge of a word. Counted otherwise it is off by as much as
the characters before it differ in length, and cuts words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard

MOST_SPANS = 20_000
MOST_NUMBERS = 6
WITHIN = 0.98
"""Share of the spans of a pair of fields that lie within their text, in bytes at least."""
LONGEST = 2000
"""Characters of a text that were kept."""


@dataclass(frozen=True, eq=False)
class Spans:
    """Of all shards of a set, one behind the other. `fits`: bool shape (units, spans), see `UNITS`."""

    text: str
    start: str
    end: str
    shard: Array
    row: Array
    fits: Array
    changed: Array
    """bool shape (units, spans): whether the unit gives another place than characters do."""
    quoted: str = ""
    """The field whose words are to stand at `start`; "" where spans have an end."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The numbers, then the texts."""
        return tuple(n for n in (self.start, self.end, self.text, self.quoted) if n)

    @property
    def numbers(self) -> str:
        """The fields that are counted."""
        return f"{self.start} and {self.end}" if self.end else self.start

    @property
    def fitting(self) -> str:
        """What spans do that are counted as their text is."""
        return f"have the words of {self.quoted} in {self.text}" if self.quoted else (
            f"begin and end with words of {self.text}")


def _by_bytes(text: str) -> Callable[[int], int | None]:
    return _table([len(c.encode("utf-8", "surrogatepass")) for c in text])


def _by_pairs(text: str) -> Callable[[int], int | None]:
    return _table([2 if ord(c) > 0xFFFF else 1 for c in text])


def _table(widths: Sequence[int]) -> Callable[[int], int | None]:
    """From a place in another unit to that in characters; None within a character."""
    at = {0: 0}
    total = 0
    for i, width in enumerate(widths):
        total += width
        at[total] = i + 1
    return at.get


def _moved(by: int) -> Callable[[str], Callable[[int], int | None]]:
    return lambda text: lambda place: place + by if 0 <= place + by <= len(text) else None


UNITS: tuple[tuple[str, Callable[[str], Callable[[int], int | None]]], ...] = (
    ("characters", _moved(0)), ("bytes of UTF-8", _by_bytes), ("units of UTF-16", _by_pairs),
    ("characters from 1 on", _moved(-1)), ("characters, one too early", _moved(1)),
)


def spans_of(group: Sequence[Shard]) -> Iterator[Spans]:
    """The pairs of fields of whole numbers that are spans of a text of the same row."""
    texts = [n for n, c in group[0].columns.items() if is_prose(c)]
    if not texts:
        return
    for start, end in _pairs(group):
        for text in texts:
            made = _made(group, text, start, end)
            if made is not None:
                yield made
                break


def is_prose(column: Column) -> bool:
    """Whether the texts are of several words."""
    some = column.texts[:200] if column.kind == "text" else ()
    return bool(some) and sum(t.count(" ") for t in some) >= 3 * len(some)


def _pairs(group: Sequence[Shard]) -> Iterator[tuple[str, str]]:
    """Two fields that may be beginning and end: entries of one list, or two numbers of a row."""
    first = group[0]
    lists = [n for n, c in first.columns.items() if c.values.dtype.kind in "iu" and c.kind != "text"
             and (c.kind == "sequence" or len(c.row_shape) == 1)]
    for one, other in combinations(lists, 2):
        (rows, a), (of_other, b) = entries(first.columns[one]), entries(first.columns[other])
        if _list_of(one) == _list_of(other) and np.array_equal(rows, of_other):
            yield from _ordered(one, other, a, b)
    numbers = [n for n, c in first.columns.items() if c.kind == "number" and not c.row_shape
               and c.values.dtype.kind in "iu" and not is_identifier(c)][:MOST_NUMBERS]
    for one, other in combinations(numbers, 2):
        yield from _ordered(one, other, first.columns[one].values, first.columns[other].values)


def _list_of(name: str) -> str:
    """The list whose entries a field holds: `entities` of `entities.start` and of `entities[0]`."""
    return name.rpartition(".")[0] or name.partition("[")[0]


def entries(column: Column) -> tuple[Array, Array]:
    """int64 (entries,): the row of each entry of a field of lists or single numbers, and the entries."""
    if column.offsets is not None:
        return np.repeat(np.arange(column.rows), np.diff(column.offsets)), column.values
    width = int(np.prod(column.row_shape))
    return np.repeat(np.arange(column.rows), width), column.values.reshape(-1)


def _ordered(one: str, other: str, a: Array, b: Array) -> Iterator[tuple[str, str]]:
    if len(a) and float((a < b).mean()) >= WITHIN and a.min() >= 0:
        yield one, other
    elif len(a) and float((b < a).mean()) >= WITHIN and b.min() >= 0:
        yield other, one


def _made(group: Sequence[Shard], text: str, start: str, end: str) -> Spans | None:
    shards, rows, fits, changed = [], [], [], []
    share = max(200, MOST_SPANS // len(group))
    outside = 0
    for i, shard in enumerate(group):
        columns = [shard.columns.get(n) for n in (text, start, end)]
        if any(c is None or c.rows != shard.rows for c in columns):
            return None
        told, a, b = (c for c in columns if c is not None)
        (at, starts), (of_end, ends) = entries(a), entries(b)
        if len(told.texts) != shard.rows or not np.array_equal(at, of_end):
            return None
        some = np.arange(0, len(at), max(1, len(at) // share))
        last, units = -1, [u("") for _, u in UNITS]
        for s in some:
            row, span = int(at[s]), (int(starts[s]), int(ends[s]))
            words = told.texts[row]
            if span[1] > len(words.encode("utf-8", "surrogatepass")):
                outside += len(words) < LONGEST
                continue
            if row != last:
                last, units = row, [u(words) for _, u in UNITS]
            places = [(u(span[0]), u(span[1])) for u in units]
            shards.append(i)
            rows.append(row)
            fits.append([_at_edges(words, *p) for p in places])
            changed.append([p != span for p in places])
    if len(rows) < 40 or outside > (1 - WITHIN) * len(rows):
        return None
    return Spans(text, start, end, np.array(shards), np.array(rows), np.array(fits).T, np.array(changed).T)


def _at_edges(text: str, start: int | None, end: int | None) -> bool:
    """Whether a span begins and ends with a word."""
    if start is None or end is None or not 0 <= start < end <= len(text):
        return False
    inside = not text[start].isspace() and not text[end - 1].isspace()
    before = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
    behind = end == len(text) or not (text[end - 1].isalnum() and text[end].isalnum())
    return inside and before and behind
