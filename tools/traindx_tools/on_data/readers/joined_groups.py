"""Groups of a file that hold the same fields, each of rows of its own: episodes, sites, patients as one table.

`data/demo_0/actions` has 118 rows and `data/demo_1/actions` 131: read as arrays of one table, those of one length alone
would be looked at. Joined they are what a CSV with a column of the episode is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.names import split_of
from traindx_tools.on_data.roles import is_target

FEWEST, FEWEST_FIELDS, MOST_LEVELS = 3, 2, 3
"""Groups, fields of each, and levels at which groups are looked for."""
GROUP = "group"


def joined(
    arrays: Mapping[str, Array], separator: str = "."
) -> tuple[dict[str, Array], tuple[tuple[str, int], ...]] | None:
    """The fields of all groups behind each other, the group of each row among them, and where each group begins.

    None where there are no such groups: those that are called as splits are none, and stay tables of their own. Groups
    of one length are columns of one table as well (joints of a body), but where each has a target of its own.
    """
    for level in range(1, MOST_LEVELS + 1):
        groups: dict[str, dict[str, Array]] = {}
        for name, array in arrays.items():
            parts = name.split(separator)
            if len(parts) > level:
                groups.setdefault(separator.join(parts[:level]), {})[separator.join(parts[level:])] = array
        if len(groups) >= FEWEST and _alike(groups) and _of_their_own(groups):
            fields = next(iter(groups.values()))
            made = {n: np.concatenate([g[n] for g in groups.values()]) for n in fields}
            lengths = [len(next(iter(g.values()))) for g in groups.values()]
            told = [g.split(separator)[-1] for g in groups]
            starts = tuple(zip(told, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))
            names = np.repeat(np.array(told, np.str_), lengths)
            return made if GROUP in made else {GROUP: names, **made}, starts
    return None


def _alike(groups: Mapping[str, Mapping[str, Array]]) -> bool:
    """Whether all groups hold the same fields of the same form, and each as many rows of all of them."""
    forms = {tuple(sorted((n, a.shape[1:], a.dtype.kind) for n, a in g.items())) for g in groups.values()}
    return len(forms) == 1 and len(next(iter(forms))) >= FEWEST_FIELDS and all(
        len({len(a) for a in g.values()}) == 1 for g in groups.values())


def _of_their_own(groups: Mapping[str, Mapping[str, Array]]) -> bool:
    lengths = {len(next(iter(g.values()))) for g in groups.values()}
    if any(split_of(name) for name in groups):
        return False
    named = not any(c.isdigit() for name in groups for c in name)  # numbered ones: `file_groups`
    return len(lengths) > 1 or (named and any(is_target(n.split(".")[-1]) for n in next(iter(groups.values()))))
