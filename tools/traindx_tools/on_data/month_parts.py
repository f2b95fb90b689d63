"""The rows of a set cut by the month, or the week, that a time of each row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.calendar_parts import DAY, seconds_of
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import COVERED, FEWEST_PARTS, MOST_KINDS, ROWS, Cut
from traindx_tools.on_data.shard import Shard

MOST_ROWS = 200_000


def by_month(group: Sequence[Shard]) -> Iterator[Cut]:
    """One cut: by months where there are three and more, else by weeks; by the first field of times."""
    if sum(s.rows for s in group) > MOST_ROWS:
        return
    for name in group[0].columns:
        if not all(name in s.columns and s.columns[name].rows == s.rows for s in group):
            continue
        seconds = [seconds_of(s.columns[name], np.arange(s.rows)) for s in group]
        if any(s is None for s in seconds):
            continue
        known = [s for s in seconds if s is not None]
        for unit in ("M", "W"):
            if (cut := _cut(name, known, unit)) is not None:
                yield cut
                return


def _cut(name: str, seconds: Sequence[Array], unit: str) -> Cut | None:
    of = [(s // DAY).astype("datetime64[D]").astype(f"datetime64[{unit}]") for s in seconds]
    kinds, counts = np.unique(np.concatenate(of), return_counts=True)
    large = kinds[counts >= ROWS]
    if not FEWEST_PARTS <= len(large) <= MOST_KINDS or counts[counts >= ROWS].sum() < COVERED * counts.sum():
        return None
    at = [np.minimum(np.searchsorted(large, o), len(large) - 1) for o in of]
    member = tuple(np.where(large[a] == o, a, -1).astype(np.int64) for a, o in zip(at, of, strict=True))
    return Cut(name, tuple(f"{m}" for m in large), member, True)
