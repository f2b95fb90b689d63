"""By what the rows of a dataset can be told apart: its parts, and what it holds one of for each row.

A dataset that was put together of several (`ConcatDataset`) says which row comes from which; lists and arrays of its
own with one entry a row and few distinct ones say it too: sources, folders, sites, classes. Nothing is called but
`len`, and nothing beyond `MOST_ROWS` is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 500_000
MOST_KINDS = 64
MOST_GROUPINGS = 12
EACH = 2
"""Rows that a kind has on average at least: numbers and names of rows are no kinds."""
MOST_FIELDS = 64


@dataclass(frozen=True, eq=False)
class Grouping:
    """`codes`: int32 shape (rows of the dataset,), the place of each row's kind among `kinds`."""

    name: str
    kinds: tuple[str, ...]
    codes: NDArray[np.int32]


def groupings(dataset: Any) -> tuple[Grouping, ...]:
    """What the rows of this dataset can be told apart by; nothing where that cannot be seen."""
    try:
        rows = len(dataset)
    except Exception:  # noqa: BLE001 - a dataset of the user may do anything
        return ()
    if not 0 < rows <= MOST_ROWS:
        return ()
    found = []
    for name, values in _candidates(dataset, rows):
        made = _grouping(name, values)
        if made is not None:
            found.append(made)
        if len(found) == MOST_GROUPINGS:
            break
    return tuple(found)


def _candidates(dataset: Any, rows: int) -> Iterator[tuple[str, Any]]:
    ends = getattr(dataset, "cumulative_sizes", None)
    if isinstance(ends, (list, tuple)) and ends and ends[-1] == rows and len(ends) > 1:
        yield "datasets", [f"dataset {k}" for k in np.searchsorted(np.asarray(ends), np.arange(rows), side="right")]
    fields = getattr(dataset, "__dict__", None)
    for name, value in list((fields or {}).items())[:MOST_FIELDS]:
        if isinstance(value, Mapping) or type(value).__name__ == "DataFrame":
            for key in list(value.keys())[:MOST_FIELDS]:
                if _length(value[key]) == rows:
                    yield f"{name}[{key!r}]", value[key]
        elif _length(value) == rows:
            yield name, value


def _length(value: Any) -> int:
    try:
        return len(value) if isinstance(value, (Sequence, np.ndarray)) or hasattr(value, "__array__") else -1
    except Exception:  # noqa: BLE001 - see above
        return -1


def _grouping(name: str, values: Any) -> Grouping | None:
    try:
        flat = _keys(values)
    except Exception:  # noqa: BLE001 - entries of any kind
        return None
    if flat is None or not len(flat):
        return None
    if len(flat) > 2000 and len(np.unique(flat[:2000])) > MOST_KINDS:
        return None
    kinds, codes = np.unique(flat, return_inverse=True)
    if not 2 <= len(kinds) <= min(MOST_KINDS, len(flat) // EACH):
        return None
    return Grouping(name, tuple(str(k)[:80] for k in kinds), codes.reshape(-1).astype(np.int32))


def _keys(values: Any) -> NDArray[Any] | None:
    """One sortable key a row: whole numbers, texts; of paths and of records that begin with one, the folder."""
    if isinstance(values, (str, bytes, range)):
        return None
    if hasattr(values, "detach"):
        if values.device.type != "cpu":
            return None
        values = values.detach().numpy()
    if not isinstance(values, np.ndarray):
        first = values[0]
        if isinstance(first, (tuple, list)) and first and isinstance(first[0], (str, os.PathLike)):
            values = [os.path.dirname(os.fspath(v[0])) for v in values]
        elif isinstance(first, (str, os.PathLike)):
            texts = [os.fspath(v) for v in values]
            values = [os.path.dirname(t) for t in texts] if all(os.sep in t for t in texts[:50]) else texts
        elif isinstance(first, Mapping):
            return None
        values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iubUSO":
        return None
    return np.asarray(values.astype(str) if values.dtype.kind in "OS" else values)
