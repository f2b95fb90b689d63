"""Recordings of several streams of one time: groups of a file (`demo_3/obs`, `demo_3/actions`), or files of one set.

Groups are told by their names alone: arrays that are called alike but for one number, of which those with the same
number have as many rows. What the readers kept of them is enough: numbers of one or two axes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

FEWEST, FEW = 5, 4
"""Recordings of a family; or so many, where each is long."""
LONG = 500
"""Rows from which a recording is long: of so few a lag is told by its rows."""
SHORTEST, LONGEST = 30, 50_000
"""Rows of a recording."""
WIDEST = 512
MOST_WIDTH = 16
"""Features of a stream that are looked at: of more, as many over all of them."""
MOST_STREAMS = 6
MOST_RECORDINGS = 400
_BETWEEN = re.compile(r"[._\-/]+|(?<=[A-Za-z])(?=\d)")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, eq=False)
class Recording:
    """Streams of the same rows: float64 shape (rows, features) each, by name."""

    name: str
    shard: Shard
    streams: Mapping[str, Array]
    of_row: bool = False
    """Whether it is one row of a file, whose fields hold all of its steps."""

    @property
    def rows(self) -> int:
        """How many rows its streams have."""
        return len(next(iter(self.streams.values())))


def families(data: DataSet) -> Iterator[tuple[Recording, ...]]:
    """Recordings with the same streams: the groups within each file, and the files of each split."""
    for shard in data.shards:
        if shard.numbers is None:
            yield from within(shard)
    for group in data.splits.values():
        found = [r for s in group if s.numbers is None and (r := _whole(s)) is not None]
        yield from alike(found)


def in_groups(shard: Shard) -> bool:
    """Whether a file holds groups of arrays, so that its rows are no table: those of one length met by chance."""
    return bool(shard.left_out) and any(True for _ in within(shard))


def within(shard: Shard) -> Iterator[tuple[Recording, ...]]:
    """The groups of a file by their names: each family of the same streams."""
    arrays: dict[str, Array] = {n: c.values for n, c in shard.columns.items() if c.kind == "number"}
    arrays |= {n: v for n, v in shard.beside.items() if n not in arrays}
    by_prefix: dict[str, dict[str, dict[str, Array]]] = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "iufb" or not SHORTEST <= len(array) <= LONGEST:
            continue
        plain = _BETWEEN.sub("/", name)  # readers drop words for splits, and what stood between words with them
        for match in _DIGITS.finditer(plain):
            groups = by_prefix.setdefault(plain[:match.start()].rstrip("/"), {})
            groups.setdefault(match[0], {})[plain[match.end():].lstrip("/")] = array
    for prefix, groups in by_prefix.items():
        found = [Recording(f"{prefix}/{number}".strip("/"), shard, s) for number, streams in groups.items()
                 if (s := streams_of(streams))]
        yield from alike(found)


def streams_of(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of one recording as streams, none where they differ in length."""
    made: dict[str, Array] = {}
    for name, array in list(arrays.items())[: 4 * MOST_STREAMS]:
        if name and array.ndim <= 2 and not _is_clock(array) and (values := _features(array)) is not None:
            made[name] = values
    if len({len(v) for v in made.values()}) != 1:
        return {}
    return dict(sorted(made.items(), key=lambda m: -m[1].shape[1])[:MOST_STREAMS])


def _features(array: Array) -> Array | None:
    flat = np.asarray(array).reshape(len(array), -1)
    if flat.shape[1] > WIDEST:
        return None
    if flat.shape[1] > MOST_WIDTH:
        flat = flat[:, np.linspace(0, flat.shape[1] - 1, MOST_WIDTH).astype(np.int64)]
    values = np.asarray(flat, np.float64)
    return values if np.isfinite(values).all() else None


def _is_clock(array: Array) -> bool:
    """Whether it only grows, as times and numbers of rows do."""
    if array.ndim > 1 and array.shape[1:] != (1,):
        return False
    return bool((np.diff(np.asarray(array, np.float64).reshape(-1)) > 0).all())


def _whole(shard: Shard) -> Recording | None:
    if not SHORTEST <= shard.rows <= LONGEST:
        return None
    arrays = {n: c.values for n, c in shard.columns.items()
              if c.kind == "number" and c.values.dtype.kind in "iufb" and len(c.row_shape) <= 1 and c.rows == shard.rows
              and not is_time(n) and not (not c.row_shape and is_identifier(c))}
    streams = streams_of(arrays)
    return Recording(shard.name, shard, streams) if streams else None


def alike(found: Sequence[Recording]) -> Iterator[tuple[Recording, ...]]:
    """Recordings whose streams have the names and widths that most have."""
    forms: dict[tuple[tuple[str, int], ...], list[Recording]] = {}
    for one in found[:MOST_RECORDINGS]:
        forms.setdefault(tuple(sorted((n, v.shape[1]) for n, v in one.streams.items())), []).append(one)
    for form, group in forms.items():
        enough = len(group) >= FEWEST or (len(group) >= FEW and min(r.rows for r in group) >= LONG)
        if len(form) >= 2 and enough:
            yield tuple(group)
