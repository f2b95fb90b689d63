"""Tables that a model holds beside the program's own numbering of names: which name the program gives to which row.

A vocabulary that gives each word a number, an index of items, a list of classes: the program looks rows up by them.
Of a table as long as a numbering, some rows are kept with the names that the numbering gives them, so that files which
name their rows can be asked whether they are those (D176). Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from traindx_tools.on_variables.visiting import is_float_array, is_of_jax, visit

KIND = "numbered"
"""Of the record."""
FEWEST, MOST_NAMES = 16, 500_000
SPECIAL = 16
"""Rows that a table may have more than names: padding, unknown, room to a round number."""
ROWS, COLUMNS = 300, 6
"""That are kept of a table."""
MOST_PAIRS = 12
SECONDS = 0.2
"""Of this thread's processor time that a look may take."""
LONGEST = 80
"""Characters that are kept of a name."""


@dataclass(frozen=True)
class Numbered:
    """Some rows of a table that a model holds, with the names that the program's numbering gives them."""

    table: str
    numbering: str
    file: str
    """Where the numbering stands: its file, "" where a library made it."""
    length: int
    """Rows of the table."""
    rows: tuple[int, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """Of some columns, by row."""

    def as_record(self) -> dict[str, Any]:
        """For a record of the run."""
        return {"table": self.table, "numbering": self.numbering, "file": self.file, "length": self.length,
                "rows": list(self.rows), "names": list(self.names), "values": [list(v) for v in self.values]}


def from_record(said: object) -> Numbered | None:
    """What `as_record` gave; None of anything else."""
    if not isinstance(said, Mapping):
        return None
    try:
        rows = tuple(int(r) for r in said["rows"])
        names = tuple(str(n) for n in said["names"])
        values = tuple(tuple(float(v) for v in row) for row in said["values"])
        found = Numbered(str(said["table"]), str(said["numbering"]), str(said["file"]), int(said["length"]), rows,
                         names, values)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return found if len(rows) == len(names) == len(values) and len({len(v) for v in values}) == 1 else None


def take(seconds: float = SECONDS) -> list[Numbered]:
    """The tables and numberings among the program's variables, for at most so long."""
    numberings: list[tuple[str, str, Mapping[int, str]]] = []
    tables: list[tuple[str, Any]] = []
    for seen in visit(_numbering_or_table, seconds):
        if isinstance(seen.taken, Mapping):
            numberings.append((seen.file, seen.path, seen.taken))
        elif seen.in_module or is_of_jax(seen.value):
            tables.append((seen.path, seen.value))
    pairs = ((t, n) for t in tables for n in numberings if _fit(t[1], n[2]))
    return [k for pair in islice(pairs, MOST_PAIRS) if (k := _kept(*pair)) is not None]


def _numbering_or_table(value: Any) -> Mapping[int, str] | bool | None:
    return numbering_of(value) or (_is_table(value) or None)


def numbering_of(value: Any) -> Mapping[int, str] | None:
    """Names by their numbers: of a dict that gives each name one, the other way round, or of a list of names."""
    kind = type(value)
    if issubclass(kind, dict):
        if not FEWEST <= len(value) <= MOST_NAMES:
            return None
        items = list(dict.items(value))
        if all(type(v) is int for _, v in items) and all(type(k) in (str, int) for k, _ in items):
            items = [(v, k) for k, v in items]
        elif not (all(type(k) is int for k, _ in items) and all(type(v) is str for _, v in items)):
            return None
        found = {number: str(name)[:LONGEST] for number, name in items}
        first = min(found)
        whole = len(found) == len(items) and 0 <= first <= SPECIAL and max(found) - first == len(found) - 1
        return found if whole and any(str(n) != name for n, name in found.items()) else None
    if issubclass(kind, np.ndarray):
        value = value.tolist() if value.ndim == 1 and value.dtype.kind in "UO" and value.size <= MOST_NAMES else None
    elif not (issubclass(kind, (list, tuple)) and len(value) <= MOST_NAMES):
        value = None
    return _listed(value) if value is not None else None


def _listed(value: Sequence[Any]) -> Mapping[int, str] | None:
    if len(value) < FEWEST or type(value[0]) is not str or not all(type(v) is str for v in value):
        return None
    return dict(enumerate(v[:LONGEST] for v in value)) if len(set(value)) == len(value) else None


def _is_table(value: Any) -> bool:
    """Whether it is an array of numbers of at least two columns, which no plain array of numpy in a model is."""
    return is_float_array(value) and type(value).__module__ != "numpy" and value.ndim == 2 and (
        value.shape[0] >= FEWEST and value.shape[1] > 1)


def _fit(table: Any, names: Mapping[int, str]) -> bool:
    """Whether a table has a row for each number, and hardly more."""
    return 0 <= int(table.shape[0]) - 1 - max(names) <= SPECIAL


def _kept(table: tuple[str, Any], numbering: tuple[str, str, Mapping[int, str]]) -> Numbered | None:
    """None where the values cannot be read (a buffer that was donated, a device that failed) or are not finite."""
    file, called, names = numbering
    numbers = sorted(names)
    rows = [numbers[i] for i in np.unique(np.linspace(0, len(numbers) - 1, min(ROWS, len(numbers))).astype(int))]
    columns = np.unique(np.linspace(0, int(table[1].shape[1]) - 1, COLUMNS).astype(int))
    try:
        values = tuple(_some(table[1], rows, columns))
    except RuntimeError:
        return None
    if not np.isfinite(values).all():
        return None
    return Numbered(table[0], called, file, int(table[1].shape[0]), tuple(rows), tuple(names[r] for r in rows), values)


def _some(table: Any, rows: Sequence[int], columns: Any) -> Iterator[tuple[float, ...]]:
    """Values at some rows and columns, read without a graph and in one transfer."""
    if hasattr(table, "detach"):
        found = table.detach()[list(rows)][:, columns.tolist()].double().cpu().numpy()
    else:
        found = np.asarray(table[np.array(rows)][:, columns], np.float64)
    yield from (tuple(row) for row in found.tolist())
