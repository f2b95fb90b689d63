"""Counts and weights of classes, and counts of tokens, that lie beside the data: in JSON, YAML and small npy files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.hints import read_settings
from traindx_tools.on_data.view import Counts

MOST = 300_000
"""Classes or tokens."""
MOST_NPY = 2**22
DEPTH = 4


def counts_of(paths: Iterable[Path]) -> tuple[Counts, ...]:
    """What the files say; one that does not parse says nothing."""
    files = list(paths)
    found = [c for where, said in read_settings(files) for c in _in(where, Path(where).stem, said, DEPTH)]
    for path in files:
        try:
            if path.suffix.lower() == ".npy" and path.stat().st_size <= MOST_NPY:
                values = _numbers(np.load(path, mmap_mode="r", allow_pickle=False))
                if values is not None:
                    found.append(Counts(path.name, path.stem, (), values))
        except (OSError, ValueError, EOFError, OverflowError, MemoryError):
            continue
    return tuple(found)


def _in(where: str, field: str, said: Any, depth: int) -> Iterator[Counts]:
    """Every list and every object of numbers."""
    if isinstance(said, Mapping) and depth:
        values = _numbers(list(said.values()))
        if values is not None:
            yield Counts(where, field, tuple(map(str, said)), values)
            return
        for key, value in list(said.items())[:5000]:
            yield from _in(where, str(key), value, depth - 1)
    elif isinstance(said, list):
        values = _numbers(said)
        if values is not None:
            yield Counts(where, field, (), values)


def _numbers(said: Any) -> Array | None:
    if isinstance(said, list) and not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in said):
        return None
    try:
        values = np.asarray(said, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return values if values.ndim == 1 and 2 <= len(values) <= MOST and np.isfinite(values).all() else None
