"""Texts that end at one length in a part of the rows, in the middle of what they say, where all others go on.

A column of 255 characters, a preview that was exported in place of the text: in the part no text is longer than one
length, many have exactly that one, and those end otherwise than texts do. Where all parts are cut alike, or blocks of
one length follow each other, nothing is said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import cuts_of, in_two
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.text_spans import is_prose

FEWEST, OTHERS = 40, 100
"""Texts of exactly the greatest length in the part, and texts elsewhere."""
PILED, ELSEWHERE = 0.1, 0.02
"""Share of the part's texts that have exactly its greatest length, at least; of all others, at most."""
LONGER = 0.05
"""Share of the texts elsewhere that are longer."""
BEYOND = 0.002
"""Share of the part's texts that may be longer."""
ENDS, BEGINNINGS = 0.5, 0.3
"""Total variation distance of the last characters of the texts of that length to those of all other texts, at least; of
their first ones, at most: blocks of a running text begin in its middle as well."""
MOST_ROWS = 100_000
SHOWN = 2_000
"""Characters of a text that were kept."""


@dataclass(frozen=True, eq=False)
class CutTexts:
    """Rows of a part (`inside`, over all files) whose texts end at `length`."""

    field: str
    unit: str
    length: int
    part: str
    inside: Array
    cut: int
    longest: int
    """Of the texts elsewhere."""
    ends: float
    first: tuple[int, int]
    """The file and the row of its first text of that length."""


def cut_texts(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[CutTexts]:
    """One for each field."""
    shards = [s for s in group if s.numbers is None]
    if len(shards) < len(group) or sum(s.rows for s in shards) > MOST_ROWS:
        return
    for name in group[0].columns:
        columns = [c for s in group if (c := s.columns.get(name)) is not None and _is_text(c, s.rows)]
        if len(columns) == len(group):
            found = _of_field(group, labels, name, [t for c in columns for t in c.texts])
            if found is not None:
                yield found


def _is_text(column: Column, rows: int) -> bool:
    return column.kind == "text" and len(column.texts) == rows == column.rows and is_prose(column) and (
        not is_identifier(column) or rows > OTHERS)


def _of_field(group: Sequence[Shard], labels: Sequence[str], name: str, texts: Sequence[str]) -> CutTexts | None:
    characters = np.array([len(t) for t in texts])
    in_bytes = np.array([len(t.encode("utf-8", "surrogatepass")) for t in texts])
    for unit, lengths in (("characters", characters), ("bytes", in_bytes)):
        kinds, counts = np.unique(lengths, return_counts=True)
        usual = float(np.median(counts))
        piled = [int(k) for k, c in zip(kinds, counts, strict=True)
                 if c >= max(FEWEST, 5 * usual) and k < min(SHOWN, int(lengths.max()))]
        for length in sorted(piled, key=lambda k: -int(counts[np.searchsorted(kinds, k)]))[:3]:
            for part, inside in _parts(group, labels, lengths, length):
                seen = _seen(texts, lengths, length, inside)
                if seen is not None:
                    at = int(np.flatnonzero(inside & (lengths == length))[0])
                    starts = np.cumsum([0, *(s.rows for s in group)])
                    file = int(np.searchsorted(starts, at, side="right")) - 1
                    return CutTexts(name, unit, length, part, inside, int((inside & (lengths == length)).sum()),
                                    int(lengths[~inside].max()), seen, (file, at - int(starts[file])))
    return None


def _parts(group: Sequence[Shard], labels: Sequence[str], lengths: Array, length: int) -> Iterator[tuple[str, Array]]:
    """The parts that may be cut: files, splits, groups, and the stretch of each file in which no text is longer."""
    for cut in (*cuts_of(group, labels), *in_two(group)):
        member = np.concatenate(cut.member)
        yield from ((cut.told(p), member == p) for p in range(len(cut.names)))
    start = 0
    for shard in group:
        mine = lengths[start: start + shard.rows]
        found = heaviest(np.where(mine == length, 1.0, np.where(mine > length, -2.0, 0.0)))
        inside = np.zeros(len(lengths), bool)
        inside[start + found.start: start + found.end] = True
        first, last = found.start, found.end - 1
        yield f"rows {first}..{last} of {shard.name.rpartition('/')[2]}", inside
        start += shard.rows


def _seen(texts: Sequence[str], lengths: Array, length: int, inside: Array) -> float | None:
    """How far the ends of the texts of that length are from those of all others, where they were cut; else None."""
    here, there = lengths[inside], lengths[~inside]
    if len(there) < OTHERS or int((here == length).sum()) < max(FEWEST, math.ceil(PILED * len(here))):
        return None
    if float((here > length).mean()) > BEYOND or float((there == length).mean()) > ELSEWHERE or (
            float((there > length).mean()) < LONGER):
        return None
    cut = [texts[i] for i in np.flatnonzero(inside & (lengths == length)).tolist()]
    rest = [texts[i] for i in np.flatnonzero(~inside & (lengths < SHOWN)).tolist()]
    if len(rest) < OTHERS:
        return None
    ends, beginnings = (_apart([_kind(t[at:][:1]) for t in cut], [_kind(t[at:][:1]) for t in rest]) for at in (-1, 0))
    return ends if ends >= ENDS and beginnings <= BEGINNINGS else None


def _kind(character: str) -> str:
    """Letters of either case and figures are one kind each; any other character is its own."""
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return "0" if character.isdigit() else character


def _apart(one: Sequence[str], other: Sequence[str]) -> float:
    a, b = Counter(one), Counter(other)
    return 0.5 * sum(abs(a[k] / len(one) - b[k] / len(other)) for k in {*a, *b})
