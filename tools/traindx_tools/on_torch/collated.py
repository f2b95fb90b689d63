"""What a DataLoader of this process gives its collate function, before that can change it, and what comes out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.utils.data import _utils as data_utils

MOST_CALLS, MOST_ROWS = 64, 16
"""Calls of one loader's collate function that are told, and rows of each."""
MOST_READ = 128
"""Rows of a batch that is told as a whole."""


class Collated:
    """The patch of the fetchers: their collate function is called as before, and told."""

    def __init__(self, tell: Callable[[Mapping[str, list[Any]], Any], None], quiet: Callable[[], bool],
                 tell_rows: Callable[[Callable[..., Any], Sequence[Any], Any], None] = lambda *_: None) -> None:
        """`tell`: takes the values of each field of the first rows, and the batch; `tell_rows`: the collate function,
        the rows as they were read, and the batch."""
        self._tell, self._quiet, self._tell_rows = tell, quiet, tell_rows

    def made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The patch of a fetcher's `__init__`."""

        @functools.wraps(original)
        def make(fetcher: Any, *args: Any, **kwargs: Any) -> None:
            original(fetcher, *args, **kwargs)
            if data_utils.worker._worker_info is None and callable(getattr(fetcher, "collate_fn", None)):
                fetcher.collate_fn = self._told(fetcher.collate_fn)

        return make

    def _told(self, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        calls = [0]

        @functools.wraps(collate, updated=())
        def call(rows: Any) -> Any:
            if calls[0] >= MOST_CALLS or self._quiet():
                return collate(rows)
            calls[0] += 1
            fields = fields_of(rows)
            own = as_read(rows)
            batch = collate(rows)
            if own:
                self._tell_rows(collate, own, batch)
            if fields:
                self._tell(fields, batch)
            return batch

        return call


def as_read(rows: Any) -> list[Any]:
    """The rows in their order, each in a container of its own: collate functions sort lists and take fields out."""
    if not isinstance(rows, list) or not 1 < len(rows) <= MOST_READ:
        return []
    return [dict(r) if type(r) is dict else tuple(r) if type(r) in (tuple, list) else r for r in rows]


def fields_of(rows: Any) -> dict[str, list[Any]]:
    """The values of each field that all of the first rows have; {} where rows are no dicts."""
    if not isinstance(rows, Sequence) or not rows or not all(isinstance(r, dict) for r in rows[:MOST_ROWS]):
        return {}
    first = [dict.items(r) for r in rows[:MOST_ROWS]]  # a mapping of its own kind may compute what it is asked for
    several = [dict(pairs) for pairs in first]
    shared = [k for k in several[0] if isinstance(k, str) and all(k in r for r in several)]
    return {k: [r[k] for r in several] for k in shared}
