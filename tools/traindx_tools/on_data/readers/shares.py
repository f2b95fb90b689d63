"""Which files are read as a sample, as all files of their kind together hold more than is looked at row by row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

WHOLE_TEXT = 2**26
"""Bytes of all CSV files, or of all JSON lines, up to which they are read as far as the limits of a file allow."""
WHOLE_VALUES = 2**24
"""Values of all parquet files up to which the same holds."""
LEAST = 0.25
"""Of an equal share: what a small file gets at least."""


def shares_of(files: Sequence[tuple[Path, str, str]]) -> dict[Path, float]:
    """By file, its part of the sample of its kind; files that are not in it are read as far as the limits allow."""
    out: dict[Path, float] = {}
    for form in ("csv", "json lines", "parquet"):
        sizes = {p: os.path.getsize(p) for p, _, f in files if f == form and p.suffix != ".gz"}
        if sum(sizes.values()) > WHOLE_TEXT if form != "parquet" else _values(list(sizes)) > WHOLE_VALUES:
            total = sum(sizes.values())
            out |= {p: max(size / total, LEAST / len(sizes)) for p, size in sizes.items()}
    return out


def _values(files: Sequence[Path]) -> int:
    """Rows times columns, by the footers; 0 where they cannot be read, which the reader tells."""
    if not files:
        return 0
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return 0
    total = 0
    for path in files:
        try:
            found = pq.read_metadata(path)
        except (pa.ArrowException, OSError):
            continue
        total += found.num_rows * found.num_columns
    return total
