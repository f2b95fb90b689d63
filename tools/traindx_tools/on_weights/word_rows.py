"""Which row of a table belongs to which name: told by a file that holds the vectors under their names, and by counts.

A table has no names; the list beside it gives them by place. A file of vectors that names each of them says what the
rows should be. So do the run's texts: stored frequencies follow how often a word occurs, and so do the norms of its
vectors. Both are asked as the list stands, and with the table taken some rows earlier or later.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
FARTHEST = 8
"""Rows by which names and rows may be apart."""
FEWEST = 50
"""Names of a list, and words that occur."""
ALIKE = 0.99
"""Cosine of a vector with itself, rounded to a few digits."""
MOST_PARSED, MOST_LINE = 20_000, 100_000
MOST_VECTORS, MOST_TEXT = 2**28, 2**24
_WORD = re.compile(r"[^\W_]+")
_MARKS = re.compile(r"^(?:##|\u2581|\u0120|@@)|(?:@@|</w>)$")


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors by name, as a text file gives them. Of a long file only some of the lines."""

    file: str
    held: Mapping[str, Values]


@dataclass(frozen=True)
class Offset:
    """`rows`: by how many rows the vector of a name stands after the place of the name, from `first` on to `last`;
    `moved`, `same`: how many of the names that were found stand so, and at their own place."""

    rows: int
    first: int
    last: int
    moved: int
    same: int
    lost: int
    """Names whose vector is nowhere near."""


def vectors_in(path: Path) -> Vectors | None:
    """The vectors of a text file of words and numbers (word2vec, GloVe, fastText); None where it is none."""
    try:
        if path.stat().st_size > MOST_VECTORS:
            return None
        with path.open(encoding="utf-8", errors="replace") as stream:
            head = [stream.readline(MOST_LINE).split() for _ in range(3)]
            width = len(head[1]) - 1
            if width < 4 or len(head[2]) != width + 1 or not _numbers(head[1][1:]) or not _numbers(head[2][1:]):
                return None
            stream.seek(0)
            step = max(1, int(path.stat().st_size / max(1, 8 * width) / MOST_PARSED))
            held = {}
            for at, line in enumerate(stream):
                if at % step and at > FEWEST:
                    continue
                word, _, rest = line.rstrip().partition(" ")
                values = np.fromstring(rest, np.float64, sep=" ") if rest.count(" ") == width - 1 else None
                if values is not None and len(values) == width and np.isfinite(values).all():
                    held[word] = values
    except (OSError, ValueError):
        return None
    return Vectors(str(path), held) if len(held) >= FEWEST else None


def _numbers(words: Sequence[str]) -> bool:
    try:
        return all(math.isfinite(float(w)) for w in words)
    except ValueError:
        return False


def offset_of(names: Sequence[str], table: Values, vectors: Vectors) -> Offset | None:
    """Whether the table's rows are the vectors of other names than the list says; None where they are right, or no
    vectors of the file."""
    places = [(i, vectors.held[n]) for i, n in enumerate(names) if n in vectors.held]
    if len(places) < FEWEST or table.shape[1] != len(places[0][1]):
        return None
    at = np.array([i for i, _ in places])
    wanted = _unit(np.array([v for _, v in places]))
    rows = _unit(table)
    likeness = {}
    for by in range(-FARTHEST, FARTHEST + 1):
        inside = (at + by >= 0) & (at + by < len(rows))
        found = np.zeros(len(at))
        found[inside] = (wanted[inside] * rows[at[inside] + by]).sum(axis=1)
        likeness[by] = found >= ALIKE
    same = likeness[0]
    moved = {by: own & ~same for by, own in likeness.items() if by}
    by = max(moved, key=lambda b: int(moved[b].sum()))
    count, known = int(moved[by].sum()), int(np.any(list(likeness.values()), axis=0).sum())
    if count < FEWEST / 2 or known < 0.5 * len(at):
        return None
    own = at[moved[by]]
    return Offset(by, int(own[0]), int(own[-1]), count, int(same.sum()), len(at) - known)


def _unit(values: Values) -> Values:
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-30))


def words_of(paths: Sequence[Path]) -> Counter[str]:
    """How often each word occurs in texts, in lower case; of long files the beginning."""
    counts: Counter[str] = Counter()
    left = MOST_TEXT
    for path in paths:
        if left <= 0:
            break
        try:
            with path.open(encoding="utf-8", errors="replace") as stream:
                text = stream.read(left)
        except OSError:
            continue
        left -= len(text)
        counts.update(_WORD.findall(text.lower()))
    return counts


@dataclass(frozen=True)
class Counted:
    """`here`, `there`: rank correlation of a row's number with how often its name occurs, as the list stands and with
    the row `rows` after the name's place; `words`: that occur; `first`: the place from which on the others fit."""

    rows: int
    here: float
    there: float
    words: int
    first: int
    z: float


def counted_offset(names: Sequence[str], numbers: Values, counts: Mapping[str, int], z: float) -> Counted | None:
    """Whether numbers of rows follow the counts of names much better some rows off; `z`: standard errors that it takes.
    """
    occurring = [(i, c) for i, n in enumerate(names) if (c := counts.get(_MARKS.sub("", n).lower(), 0)) > 0]
    if len(occurring) < FEWEST:
        return None
    at, often = (np.array(v) for v in zip(*occurring, strict=True))
    found = {}
    for by in range(-FARTHEST // 2, FARTHEST // 2 + 1):
        inside = (at + by >= 0) & (at + by < len(numbers))
        found[by] = _correlation(_ranks(numbers[at[inside] + by]), _ranks(often[inside])) if inside.sum() > 2 else 0.0
    by = max(found, key=lambda b: abs(found[b]))
    here, there = found[0], found[by]
    apart = (math.atanh(min(0.999, abs(there))) - math.atanh(min(0.999, abs(here)))) * math.sqrt((len(at) - 3) / 2)
    if not by or apart < z:
        return None
    return Counted(by, here, there, len(at), _first(at, often, numbers, by, there), apart)


def _first(at: NDArray[np.int64], often: NDArray[np.int64], numbers: Values, by: int, there: float) -> int:
    """The place from which on names fit the shifted rows better than their own, by the sum of what each leaves."""
    inside = (at + by >= 0) & (at + by < len(numbers)) & (at < len(numbers))
    at, often = at[inside], often[inside]
    ranked = _ranks(numbers)
    wanted = _ranks(often) / len(often) * (1 if there > 0 else -1)
    errors = [np.abs(ranked[at + o] / len(numbers) * (1 if there > 0 else -1) - wanted) for o in (0, by)]
    gain = np.cumsum(errors[0] - errors[1])
    return int(at[min(len(at) - 1, int(np.argmin(gain)) + 1)]) if gain.min() < 0 else int(at[0])


def _ranks(values: NDArray[np.generic]) -> Values:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse], np.float64)


def _correlation(one: Values, other: Values) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if one.std() > 0 and other.std() > 0 else 0.0


def by_row(tables: Mapping[str, NDArray[np.floating]], rows: int) -> Iterator[tuple[str, Values]]:
    """A number of each row: what a vector holds, and the norms of a table of as many rows."""
    for name, values in tables.items():
        if values.shape[:1] == (rows,) and np.isfinite(values).all():
            if values.ndim == 1:
                yield name, values.astype(np.float64)
            elif values.ndim == 2:
                yield f"the norms of the rows of {name}", np.linalg.norm(values.astype(np.float64), axis=1)
