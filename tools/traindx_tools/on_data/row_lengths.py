"""Rows whose texts and lists are their lengths: how long a sentence is goes along with how long it takes to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_data.column import Column
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard

FEWEST = 12
"""Different lengths below which they tell no row from another."""


def with_lengths(group: Sequence[Shard]) -> tuple[Shard, ...]:
    """The same files with lengths for texts and lists that vary in length in all of them; () where none does."""
    names = [n for n in group[0].columns if all(_varies(s.columns.get(n)) for s in group)]
    if not names:
        return ()
    return tuple(replace(s, columns={n: _length(c) if n in names else c for n, c in s.columns.items()}) for s in group)


def _varies(column: Column | None) -> bool:
    if column is None or column.kind not in ("text", "sequence") or is_identifier(column):
        return False
    return len(np.unique(column.lengths)) >= FEWEST


def _length(column: Column) -> Column:
    return Column(column.name, "number", np.asarray(column.lengths, np.float64), column.file)
