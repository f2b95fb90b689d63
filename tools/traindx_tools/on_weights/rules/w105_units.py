"""Units of a layer are dead (rows of zeros) or doubled (equal rows) where those of its siblings are not.

A share of zero rows that all blocks have is pruning. In a matrix without siblings zeros must end it in one run, as what
was not written whole does, or equal rows must be a quarter of it; single padding rows are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W105",
    name="dead-or-doubled-units",
    title="Units of one layer are dead or equal",
    severity=Severity.MEDIUM,
    sees="Rows that are zero and rows that are equal, against the share of them in the same tensor of other blocks.",
    matters="Dead units pass nothing on; equal ones compute the same and get the same gradient: capacity is lost.",
    alike=("pruned weights", "padding rows of an embedding", "heads repeated on purpose (grouped queries)"),
    confirm=("compare the rows with an earlier checkpoint", "count the units that are ever active on a batch"),
    thresholds={
        "more": Threshold(0.05, "share of the rows above the siblings' median share", "more than chance in any layer"),
        "alone": Threshold(0.25, "share of equal rows without siblings", "a quarter of the layer is lost"),
        "whole": Threshold(0.05, "share of equal rows whose bias or scale is equal too", "copied units"),
    },
)
_MORE, _ALONE = 0.05, 0.25
_ONE_NORM = 1e-3
"""Share by which squared norms differ where all are one, up to the digits of half precision."""
_NEAR = 5
"""Tensors behind a layer's weight among which its bias and its normalisation stand."""
_APART = 0.9
"""Share of the other units whose values differ: those of a fresh layer are all alike."""
_COMPARED = 512
"""Candidates for equal rows that are compared byte by byte."""


def check(seen: Seen) -> Iterator[Finding]:
    """Zero rows and equal rows of every matrix of weights."""
    for kind, count in (("zero", _zeros), ("equal", _equals)):
        rows = {s.name: count(s) for s in seen.weights if s.tensor.rows >= 8 and s.size // s.tensor.rows >= 4
                and not s.constant}
        for stats in seen.weights:
            found = rows.get(stats.name)
            if found is not None and len(found) >= 2:
                yield from _judged(seen, stats, kind, found, rows)


def _zeros(stats: Stats) -> NDArray[np.intp]:
    return stats.zero_rows


def _equals(stats: Stats) -> NDArray[np.intp]:
    """Rows that are equal to an earlier one, bit by bit; those of zeros are not counted."""
    if len(stats.row_squares) < 2:
        return np.zeros(0, np.intp)
    order = np.argsort(stats.row_keys, kind="stable")
    keys, squares = stats.row_keys[order], stats.row_squares[order]
    again = np.flatnonzero((keys[1:] == keys[:-1]) & (squares[1:] > 0)) + 1
    if not len(again):
        return again
    earlier = np.arange(len(order))
    for at in again:  # in the order of the keys: what equals the one before equals the first of them
        earlier[order[at]] = earlier[order[at - 1]]
    found = np.sort(order[again])
    look = found[:: max(1, len(found) // _COMPARED)]
    same = np.array([stats.tensor.row(int(i)) == stats.tensor.row(int(earlier[i])) for i in look])
    return found if len(look) < len(found) and same.mean() > 0.9 else look[same]


def _judged(seen: Seen, stats: Stats, kind: str, found: NDArray[np.intp],
            rows: dict[str, NDArray[np.intp]]) -> Iterator[Finding]:
    total = stats.tensor.rows
    share = len(found) / total
    stack = seen.stack_of.get(stats.name)
    if stack is not None:
        others = [len(rows[s.name]) / total for s in stack.members if s is not stats and s.name in rows]
        usual = float(np.quantile(others, 0.75)) if others else 0.0
        if share > usual + _MORE and share > 2 * max(others, default=0.0):
            yield _finding(seen, stats, kind, found, f"in the other {len(others)} blocks of {stack.pattern} at most "
                           f"{max(others, default=0.0):.1%} are")
    elif kind == "equal" and share >= _ALONE and not (_table(stats) and _at_the_end(found, total)) and not (
            _of_one_norm(stats)):
        yield _finding(seen, stats, kind, found, "no other matrix of its kind is there to compare")
    elif kind == "equal" and share >= _MORE and (beside := _equal_beside(seen, stats, found)):
        yield _finding(seen, stats, kind, found, f"the same places of {beside} are equal as well: units that were "
                       "copied whole, and get the same gradient unless something tells them apart")
    elif kind == "zero" and _cut(seen, stats, found, total, share):
        yield _finding(seen, stats, kind, found, "the run ends with the tensor, as of a file that was not written "
                                                 "whole")


def _equal_beside(seen: Seen, stats: Stats, found: NDArray[np.intp]) -> str:
    """A tensor of one value for each of the rows whose values are equal where the rows are, and differ elsewhere.

    Of a layer's bias or its normalisation: trained units are apart in it.
    """
    first: dict[int, int] = {}
    for at in range(stats.tensor.rows):
        first.setdefault(int(stats.row_keys[at]), at)
    pairs = [(first[int(stats.row_keys[i])], int(i)) for i in found]
    names = list(seen.part.tensors)
    near = names[names.index(stats.name) + 1: names.index(stats.name) + 1 + _NEAR]
    for name in near:
        tensor = seen.part.tensors[name]
        if not tensor.floating or tensor.shape != (stats.tensor.rows,):
            continue
        values = tensor.load()
        if len(np.unique(values)) >= _APART * (len(values) - len(found)) and all(values[a] == values[b]
                                                                                 for a, b in pairs):
            return name
    return ""


def _of_one_norm(stats: Stats) -> bool:
    """Whether all rows have the same norm: sines of positions, of which W113 speaks, or directions."""
    return bool(np.ptp(stats.row_squares) <= _ONE_NORM * stats.row_squares.mean())


def _at_the_end(found: NDArray[np.intp], total: int) -> bool:
    return bool(found[-1] == total - 1 and found[-1] - found[0] == len(found) - 1)


def _table(stats: Stats) -> bool:
    """Whether it is taller than wide, as an embedding is."""
    return stats.tensor.rows > 2 * (stats.size // stats.tensor.rows)


def _cut(seen: Seen, stats: Stats, found: NDArray[np.intp], total: int, share: float) -> bool:
    """Whether zeros are one run up to the end, long, and no added rows of an embedding (which W106 judges)."""
    sparse = sum(len(s.zero_rows) > 1 for s in seen.weights) > 1
    words = _table(stats) or is_embedding(stats)  # padded to a round number of rows
    return share >= 0.1 and not words and not sparse and _at_the_end(found, total)


def _finding(seen: Seen, stats: Stats, kind: str, found: NDArray[np.intp], beside: str) -> Finding:
    rows = ", ".join(str(int(i)) for i in found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
    what = "are zero" if kind == "zero" else "are equal to an earlier row"
    return RULE.finding(
        f"{len(found):,} of the {stats.tensor.rows:,} rows of {stats.name} in {seen.path} {what} (rows {rows}); "
        f"{beside}",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
        severity=Severity.HIGH if len(found) >= 0.25 * stats.tensor.rows else None,
        measured={"name": stats.name, "kind": kind, "rows": len(found), "of": stats.tensor.rows,
                  "share": round(len(found) / stats.tensor.rows, 4)})
