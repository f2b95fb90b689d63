"""What the files of a folder have in common: words of their names, folders, columns of a manifest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.view import View

WITHIN = 0.9
"""Of the files with something in common, those that have the property; and of those with the property."""


def groups_of(row_names: Sequence[str], view: View) -> Iterator[tuple[str, Array]]:
    """What files have in common, each with the value of each file."""
    stems = [os.path.splitext(os.path.basename(n))[0] for n in row_names]
    words = [re.split(r"[_\-. ]+|(?<=[A-Za-z])(?=\d)", s) for s in stems]
    for at in range(min(4, min(len(w) for w in words))):
        yield f"word {at + 1} of the name", np.array([w[at] for w in words])
    yield "folder", np.array([os.path.dirname(n) for n in row_names])
    yield from _manifest(stems, view)


def _manifest(stems: list[str], view: View) -> Iterator[tuple[str, Array]]:
    """Columns of a table whose one column names the files."""
    for table in (s for d in view.sets for s in d.shards if s.format in ("csv", "json lines", "json", "parquet")):
        for name, column in table.columns.items():
            if column.kind != "text" or not column.texts or len(column.texts) > 200_000:
                continue
            at = {os.path.splitext(os.path.basename(t))[0]: i for i, t in enumerate(column.texts)}
            found = [at.get(s, -1) for s in stems]
            if sum(i >= 0 for i in found) < 0.8 * len(stems):
                continue
            for other, told in table.columns.items():
                values = told.texts if told.kind == "text" else told.values if not told.row_shape else ()
                if other != name and len(values) == len(column.texts):
                    yield (f"{other} in {os.path.basename(table.name)}",
                           np.array([str(values[i]) if i >= 0 else "" for i in found]))
            return


def in_common(odd: Array, groups: Mapping[str, Array], comparisons: int) -> tuple[str, float] | None:
    """What nearly all odd files and hardly any other have in common, with the probability of that by chance.

    `odd`: bool shape (files,). `groups`: what files have in common, each with the value of each file.
    """
    best: tuple[str, float] | None = None
    share = float(odd.mean())
    for by, values in groups.items():
        kinds, codes = np.unique(values, return_inverse=True)
        if not 2 <= len(kinds) <= len(values) // 2:
            continue
        codes = codes.reshape(-1)
        within = np.bincount(codes, weights=odd, minlength=len(kinds)) / np.bincount(codes, minlength=len(kinds))
        own = within >= WITHIN
        inside = own[codes]
        p = share_tail(int(odd[inside].sum()), int(inside.sum()), share) * comparisons * len(kinds) * len(groups)
        if own.sum() > len(kinds) / 2 or odd[inside].sum() < WITHIN * odd.sum() or p > LEVEL:
            continue
        if best is None or p < best[1]:
            names = ", ".join(f"{k}" for k in kinds[own][:5])
            best = (f"all those with {by} {names}", p)
    return best
