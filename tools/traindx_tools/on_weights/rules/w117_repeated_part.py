"""A part of a matrix repeats another part of it: rows or columns that are equal, bit by bit, in the same order.

Training does not arrive twice at the same numbers. A run of rows (or columns, or input channels) whose members equal
those a fixed distance before is a copy: a slice was written to two places, or a buffer was used twice. What repeats as
a whole is design (heads repeated for grouped queries), as is what the siblings of a stack do as well, and what equals
its direct neighbour (added rows with one mean).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.summary import row_digests
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor, as_numbers
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W117",
    name="repeated-part",
    title="A part of a matrix is a copy of another part of it",
    severity=Severity.HIGH,
    sees="Runs of rows or columns that equal, bit by bit, those at a fixed distance before them.",
    matters="What stood there is lost: one slice was written to two places, and both compute the same.",
    alike=("heads repeated on purpose (all of the matrix repeats)", "rows added with one mean", "pruned units (zeros)"),
    confirm=("compare the part with an earlier checkpoint", "look for overlapping slices where the file was written"),
    thresholds={
        "run": Threshold(4, "equal lines in a row", "one or two may be tied on purpose"),
        "whole": Threshold(0.9, "share of the lines that have a twin", "above, the matrix repeats by design"),
    },
)
_RUN, _WHOLE = 4, 0.9
_WIDTH = 8
"""Values of a line, and distinct ones in it, below which lines may be equal by chance."""
MOST_BYTES = 2**26
"""Of a tensor that is looked at line by line."""
_FIRST = 8
"""Rows in which columns that repeat are looked for before the whole matrix is read again."""
MOST_TOGETHER = 2**29
"""Bytes of a part's tensors, the smallest first, whose columns are looked at too: rows are known by their norms."""


@dataclass(frozen=True)
class Repeat:
    """`count` lines along an axis from `at` on equal those from `source` on."""

    axis: int
    at: int
    source: int
    count: int


def check(seen: Seen) -> Iterator[Finding]:
    """The longest repeat of each matrix, where its siblings have none."""
    found: dict[str, Repeat] = {}
    left = MOST_TOGETHER
    for stats in sorted(seen.weights, key=lambda s: s.tensor.nbytes):
        left -= stats.tensor.nbytes
        repeat = longest_repeat(stats, all_axes=left > 0)
        if repeat is not None:
            found[stats.name] = repeat
    for stats in seen.weights:
        repeat = found.get(stats.name)
        if repeat is None:
            continue
        stack = seen.stack_of.get(stats.name)
        alike = sum(s.name in found for s in stack.members) if stack is not None else 0
        if stack is None or alike <= max(1, len(stack) // 4):
            yield _finding(seen, stats, repeat)


def longest_repeat(stats: Stats, all_axes: bool = True) -> Repeat | None:
    """The longest run of lines along the first two axes, or the last two of a kernel, that is a copy of another run.

    Without `all_axes` only rows are looked at, and read only where some have the same norm.
    """
    if stats.tensor.nbytes > MOST_BYTES or stats.constant or stats.nan or stats.inf or not stats.tensor.floating:
        return None
    rows = stats.row_squares[stats.row_squares > 0]
    recurring = len(rows) - len(np.unique(rows)) >= _RUN
    axes = (*((0,) if recurring else ()), *(_columns(stats.tensor) if all_axes else ()))
    if not axes:
        return None
    values = stats.tensor.load()
    runs = [r for axis in axes if (r := _along(np.moveaxis(values, axis, 0), axis)) is not None]
    return max(runs, key=lambda r: r.count, default=None)


def _columns(tensor: Tensor) -> tuple[int, ...]:
    """The axes behind the first along which lines may repeat: those of a matrix only where its first rows say so."""
    axes = len(tensor.shape)
    if axes != 2:
        return tuple(dict.fromkeys(a for a in (1, axes - 2, axes - 1) if 0 < a < axes))
    first = np.concatenate([as_numbers(part, tensor.dtype).copy() for part in tensor.raw(min(_FIRST, tensor.rows))])
    digests = row_digests(np.ascontiguousarray(first.reshape(-1, tensor.shape[1]).T))
    return (1,) if len(digests) - len(np.unique(digests)) >= _RUN else ()


def _along(values: NDArray[np.generic], axis: int) -> Repeat | None:
    lines = np.ascontiguousarray(values.reshape(len(values), -1)) if len(values) else values
    if lines.ndim != 2 or len(lines) < 2 * _RUN or lines.shape[1] < _WIDTH:
        return None
    digests = row_digests(lines)
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    twins = np.flatnonzero(earlier < np.arange(len(lines)))
    if len(twins) < _RUN:
        return None
    kept = np.array([i for i in twins if len(np.unique(lines[i])) >= _WIDTH and earlier[i] + 1 < i])
    having = len(twins) + len(np.unique(earlier[twins]))
    if len(kept) < _RUN or having >= _WHOLE * len(lines):
        return None
    return _longest(kept, earlier, lines, axis)


def _longest(kept: NDArray[np.intp], earlier: NDArray[np.intp], lines: NDArray[np.generic], axis: int
             ) -> Repeat | None:
    cuts = np.flatnonzero((np.diff(kept) != 1) | (np.diff(earlier[kept]) != 1)) + 1
    run = max(np.split(kept, cuts), key=len)
    at, source = int(run[0]), int(earlier[run[0]])
    if len(run) < _RUN or Counter(earlier[run].tolist()).most_common(1)[0][1] > 1:
        return None
    same = np.array_equal(lines[at: at + len(run)], lines[source: source + len(run)])
    return Repeat(axis, at, source, len(run)) if same else None


def _finding(seen: Seen, stats: Stats, repeat: Repeat) -> Finding:
    what = ("rows", "columns")[repeat.axis] if len(stats.tensor.shape) == 2 else f"lines of axis {repeat.axis}"
    last = repeat.count - 1
    return RULE.finding(
        f"{what} {repeat.at}..{repeat.at + last} of {stats.name} {list(stats.tensor.shape)} in {seen.path} equal "
        f"{what} {repeat.source}..{repeat.source + last} bit by bit, in the same order: {repeat.count} of "
        f"{stats.tensor.shape[repeat.axis]} are a copy",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": stats.name, "axis": repeat.axis, "at": repeat.at, "source": repeat.source,
                  "count": repeat.count})
