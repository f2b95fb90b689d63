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
from traindx_tools.on_weights.tensor import Tensor
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

    Without `all_axes` only rows are looked at. The whole is read only where cheap keys of its lines say that some may
    be equal.
    """
    if stats.tensor.nbytes > MOST_BYTES or stats.constant or stats.nan or stats.inf or not stats.tensor.floating:
        return None
    alike = {0: _recurring(np.where(stats.row_squares > 0, stats.row_keys, np.uint64(0)))}
    if all_axes:
        alike |= _columns(stats.tensor)
    axes = {axis: lines for axis, lines in alike.items() if len(lines) > _RUN}
    if not axes:
        return None
    values = stats.tensor.load()
    runs = [r for axis, lines in axes.items() if (r := _along(values, axis, lines)) is not None]
    return max(runs, key=lambda r: r.count, default=None)


def _recurring(keys: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The lines whose key another line has too, in order; a key of 0 is none."""
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    shared = np.zeros(len(keys), bool)
    shared[order[1:][same]] = shared[order[:-1][same]] = True
    return np.flatnonzero(shared & (keys != 0))


def _columns(tensor: Tensor) -> dict[int, NDArray[np.intp]]:
    """The axes behind the first along which lines may repeat, with those that are alike in the first rows."""
    axes = len(tensor.shape)
    long = [a for a in dict.fromkeys((1, axes - 2, axes - 1)) if 0 < a < axes and tensor.shape[a] >= 2 * _RUN]
    if not long:
        return {}
    rows = min(_FIRST, tensor.rows)
    first = np.concatenate([part.copy() for part in tensor.raw(rows)]).reshape(rows, *tensor.shape[1:])
    found = {}
    for axis in long:
        lines = np.moveaxis(first, axis, 0).reshape(tensor.shape[axis], -1)
        found[axis] = _recurring(np.where(lines.any(axis=1), row_digests(lines), np.uint64(0)))
    return found


def _along(values: NDArray[np.generic], axis: int, alike: NDArray[np.intp]) -> Repeat | None:
    """The longest repeat along an axis; `alike`: all lines of it that may have a twin."""
    count = values.shape[axis]
    lines = np.moveaxis(values, axis, 0).reshape(count, -1)
    if count < 2 * _RUN or lines.shape[1] < _WIDTH:
        return None
    _, first, inverse = np.unique(row_digests(lines[alike]), return_index=True, return_inverse=True)
    earlier = np.arange(count)
    earlier[alike] = alike[first[inverse.reshape(-1)]]
    twins = np.flatnonzero(earlier < np.arange(count))
    if len(twins) < _RUN:
        return None
    kept = np.array([i for i in twins if len(np.unique(lines[i])) >= _WIDTH and earlier[i] + 1 < i])
    having = len(twins) + len(np.unique(earlier[twins]))
    if len(kept) < _RUN or having >= _WHOLE * count:
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
