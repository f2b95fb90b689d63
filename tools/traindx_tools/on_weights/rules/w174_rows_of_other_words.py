"""The rows of a table stand some places off from the list that gives them their names.

A vocabulary that lost a line, or gained one, moves every later name by a row; where a row is missing as well the
numbers agree and nothing fails. A second file that holds the vectors under their words says which row is whose. Where
there is none, the run's texts do: stored frequencies and the norms of vectors follow how often words occur, and in a
table that is off they follow it only when they are taken from the rows beside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.name_lists import name_lists_of
from traindx_tools.on_weights.formats.reading import SUFFIXES, form_of, read_checkpoint
from traindx_tools.on_weights.word_rows import (
    ALIKE,
    FARTHEST,
    FEWEST,
    Counted,
    Offset,
    Vectors,
    by_row,
    counted_offset,
    offset_of,
    vectors_in,
    words_of,
)
from traindx_tools.rules import Rule, Threshold

_Z, _SIGN, _HALF = 8.0, 0.25, 0.5
_MOST_TABLE, _MOST_FILES = 2**27, 200
_LISTS = frozenset({".txt", ".json", ".names", ".yaml", ".yml", ".vocab"})
_VECTORS = frozenset({".vec", ".txt", ".w2v", ".glove", ".emb", ".vectors"})
_TEXTS = frozenset({".jsonl", ".csv", ".tsv", ".txt", ".json"})

RULE = Rule(
    id="W174",
    name="rows-of-other-words",
    title="Rows of a table belong to other names than the list beside it says",
    severity=Severity.HIGH,
    sees="A list of names and a table of nearly as many rows: beside a text file that holds the vectors under their "
         "names, and beside how often the names occur in the run's texts; as they stand, and some rows off.",
    matters="Each name is looked up in the row of its neighbour: the vectors are noise, and nothing fails.",
    alike=("rows for padding and unknown names before the others, which the program adds by itself: all rows are off "
           "by what the table has more: a remark", "fine-tuned vectors, unused rows",
           "names that are sorted by how often they occur: counts do not tell neighbours apart"),
    confirm=("print the row of ten words in both files", "count the lines of the list against its release"),
    thresholds={
        "alike": Threshold(ALIKE, "cosine", "of a vector with itself, rounded to a few digits"),
        "far": Threshold(FARTHEST, "rows", "that names and rows may be apart"),
        "z": Threshold(_Z, "standard errors", "by which counts fit better some rows off, of few offsets and tables"),
        "fewest": Threshold(FEWEST, "names", "that both hold, or that occur"),
    },
)


@dataclass(frozen=True, eq=False)
class _Table:
    """The arrays of one file of weights with a row for each name of a list, or nearly."""

    file: str
    arrays: dict[str, NDArray[np.floating]]


def check_beside(files: Sequence[str]) -> Iterator[Finding]:
    """Every list beside every table of about as many rows, the folder's own first. Raises UnreadableInput."""
    paths = [Path(f) for f in files[:_MOST_FILES] if "://" not in f and os.path.isfile(f)]
    lists = [n for n in name_lists_of((p, str(p)) for p in paths if p.suffix.lower() in _LISTS)
             if len(set(n.names)) >= FEWEST and len(set(n.names)) > 0.95 * len(n.names)]
    if not lists:
        return
    tables = [t for p in paths if (t := _table(p, {len(n.names) + n.first for n in lists})) is not None]
    named = {n.file for n in lists}
    vectors = [v for p in paths if tables and p.suffix.lower() in _VECTORS and str(p) not in named
               and (v := vectors_in(p)) is not None]
    counts = None
    for names in lists:
        for table in tables:
            by_name = [f for v in vectors for f in _by_vectors(names, table, v)]
            yield from by_name
            if not by_name:
                texts = [p for p in paths if p.suffix.lower() in _TEXTS and str(p) not in named
                         and str(p) not in {v.file for v in vectors}]
                counts = words_of(texts) if counts is None else counts
                yield from _by_counts(names, table, counts)


def _table(path: Path, rows: set[int]) -> _Table | None:
    """The arrays of a file whose rows are about as many as a list has names."""
    if path.suffix.lower() not in SUFFIXES:
        return None
    try:
        form = form_of(str(path))
        if not form or form == "hdf5":
            return None
        tensors = read_checkpoint(path).weights.tensors
        held = {n: t.load(_MOST_TABLE) for n, t in tensors.items() if t.floating and t.shape and len(t.shape) <= 2
                and t.nbytes <= _MOST_TABLE and any(abs(t.shape[0] - r) <= FARTHEST for r in rows)}
    except TraindxError:
        return None
    return _Table(str(path), held) if held else None  # type: ignore[arg-type]


def _by_vectors(names: NameList, table: _Table, vectors: Vectors) -> Iterator[Finding]:
    ordered = (*[""] * names.first, *names.names)
    for name, values in table.arrays.items():
        if values.ndim != 2 or abs(len(values) - len(ordered)) > FARTHEST:
            continue
        off = offset_of(ordered, values.astype(np.float64), vectors)
        if off is not None:
            yield _of_vectors(names, ordered, table.file, name, len(values), vectors, off)


def _of_vectors(names: NameList, ordered: Sequence[str], file: str, name: str, rows: int, vectors: Vectors,
                off: Offset) -> Finding:
    added = off.same == 0 and off.rows == rows - len(ordered) != 0
    word = ordered[off.first]
    beyond = (f"the rows from {off.first + off.rows} on" if off.same else "all rows")
    return RULE.finding(
        f"{beyond} of {name} in {file} are {abs(off.rows)} {'row' if abs(off.rows) == 1 else 'rows'} too "
        f"{'early' if off.rows < 0 else 'late'} for {names.file}: the vector that {vectors.file} holds for {word!r} "
        f"(entry {off.first}) is row {off.first + off.rows}, and so on for {off.moved:,} words up to entry {off.last}; "
        f"{off.same:,} words have their own row" + ("; the program may put as many entries before the list, or leave "
                                                    "them out" if added else ""),
        Location(file=file, module=name), file, bearing=Bearing.SIGN if added else Bearing.CAUSE,
        severity=Severity.INFO if added else None,
        measured={"kind": "shifted", "name": name, "rows": off.rows, "apart": abs(off.rows),
                  "first": off.first, "moved": off.moved,
                  "same": off.same, "list": names.file, "beside": vectors.file})


def _by_counts(names: NameList, table: _Table, counts: dict[str, int]) -> Iterator[Finding]:
    """The one array of a table's rows that tells the most: all of them are off together."""
    ordered = (*[""] * names.first, *names.names)
    found: list[tuple[str, int, Counted]] = []
    for rows in {len(v) for v in table.arrays.values()}:
        if abs(rows - len(ordered)) <= FARTHEST:
            found += [(name, rows, off) for name, numbers in by_row(table.arrays, rows)
                      if (off := counted_offset(ordered, numbers, counts, _Z)) is not None
                      and abs(off.there) >= _SIGN and abs(off.here) <= _HALF * abs(off.there)]
    if not found:
        return
    name, rows, off = max(found, key=lambda f: f[2].z)
    added = off.rows == rows - len(ordered) != 0
    word = ordered[off.first] if off.first < len(ordered) else ordered[-1]
    step = f"{abs(off.rows)} {'row' if abs(off.rows) == 1 else 'rows'}"
    yield RULE.finding(
        f"{name} in {table.file} does not go with how often the words of {names.file} occur in the run's texts (rank "
        f"correlation {off.here:.2f} over {off.words:,} words), and does so with the row {step} "
        f"{'before' if off.rows < 0 else 'after'} each word's own ({off.there:.2f}): from about entry {off.first} on "
        f"({word!r}) names and rows are {step} off, an entry {'too many' if off.rows < 0 else 'missing'} in the list",
        Location(file=names.file, module=name), table.file, bearing=Bearing.SIGN if added else Bearing.CAUSE,
        severity=Severity.INFO if added else None,
        measured={"kind": "counts", "name": name, "rows": off.rows, "apart": abs(off.rows),
                  "first": off.first, "here": round(off.here, 3),
                  "there": round(off.there, 3), "words": off.words, "list": names.file})
