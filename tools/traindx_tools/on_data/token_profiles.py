"""Whether the tokens of a shard are those of its siblings under other numbers: another vocabulary, or an older one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

MOST = 2**21
"""Tokens of a shard that are counted."""
APART = 0.15
"""Total variation of the shares of ids, from which on a shard uses others."""
ALIKE = 0.35
"""Of that, what may be left where both are sorted by how frequent they are."""


def renumbered(group: Sequence[Shard], index: int, field: str) -> str:
    """A clause where the shares of ids are those of the siblings in another order; "" where they are others.

    A text of another language or topic has frequent words that are more frequent, or fewer of them.
    """
    ids = [np.asarray(c.values).reshape(-1)[:MOST].astype(np.int64) if (c := s.columns.get(field)) is not None else
           np.empty(0, np.int64) for s in group]
    if any(not len(i) or int(i.min()) < 0 or int(i.max()) > 2**20 for i in ids) or len(ids) < 3:
        return ""
    size = max(int(i.max()) for i in ids) + 1
    shares = [np.bincount(i, minlength=size) / len(i) for i in ids]
    usual = np.asarray(np.mean([s for k, s in enumerate(shares) if k != index], axis=0))
    by_id, by_rank = _apart(shares[index], usual), _apart(np.sort(shares[index]), np.sort(usual))
    if by_id < APART or by_rank > ALIKE * by_id:
        return ""
    moved = int(np.argmax(usual - shares[index]))
    return (f"its ids have the frequencies of the others' under other numbers ({by_id:.2f} apart by id, {by_rank:.2f} "
            f"by rank; id {moved} is most of it), as another or an older vocabulary makes")


def _apart(one: Array, other: Array) -> float:
    return 0.5 * float(np.abs(one - other).sum())
