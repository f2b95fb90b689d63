"""A part of a matrix repeats another part of it: rows or columns that are equal, bit by bit, in the same order.

Training does not arrive twice at the same numbers. A run of rows (or columns, or input channels) whose members equal
those a fixed distance before is a copy: a slice was written to two places, or a buffer was used twice. What the
siblings of a stack repeat as well is design (heads repeated for grouped queries), and so is what equals its direct
neighbour (added rows with one mean). A matrix all of which is there twice, while its siblings are not, is the part of
one rank that was merged twice; where whole stacks repeat, rows of some and columns of others, all of them may be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
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
_KEYS = re.compile(r"(?i)(?:^|[._])(?:k|v|kv|key|value|k_?proj|v_?proj|kv_?proj|w?k|w?v|key_value)\w{0,6}(?:[._]|$)")
"""Projections that may be repeated for grouped queries."""
_BESIDE = 3
"""Tensors before and behind a matrix among which its bias or its scale stands."""
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
    whole: bool = False
    """Whether all lines along the axis have a twin."""


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
        if stack is None and repeat.whole and not _are_units(seen, stats, repeat):
            continue  # nothing says that it is not made so: a tied, widened or periodic table
        if stack is None or alike <= max(1, len(stack) // 4):
            yield _finding(seen, stats, repeat)
    yield from _merged(seen, found)


def _are_units(seen: Seen, stats: Stats, repeat: Repeat) -> bool:
    """Whether the lines are units that are there twice, and that training would have told apart."""
    return _unit_values(seen, stats, repeat) and _told_apart(seen, stats, repeat)


def _unit_values(seen: Seen, stats: Stats, repeat: Repeat) -> bool:
    """Whether a bias or a scale beside the matrix repeats at the same places, and has values of its own elsewhere."""
    count, step = stats.tensor.shape[repeat.axis], repeat.at - repeat.source
    names = list(seen.part.tensors)
    at = names.index(stats.name)
    for name in names[max(0, at - _BESIDE): at + _BESIDE + 1]:
        tensor = seen.part.tensors[name]
        if tensor.floating and tensor.shape == (count,):
            values = tensor.load()
            if np.array_equal(values[step:][: repeat.count], values[: repeat.count]) and len(
                    np.unique(values)) >= _WIDTH:
                return True
    return False


def _told_apart(seen: Seen, stats: Stats, repeat: Repeat) -> bool:
    """Whether what reads these units takes them for different ones: no line that a copy feeds is that of its twin.

    Equal units with unequal readers get unequal gradients: training does not leave them equal.
    """
    count, first, second = stats.tensor.shape[repeat.axis], repeat.source, repeat.at
    readers = [(s, a) for s in seen.weights for a, n in enumerate(s.tensor.shape) if s is not stats and n == count
               and len(s.tensor.shape) == 2 and s.tensor.nbytes <= MOST_BYTES]
    lines = [np.moveaxis(s.tensor.load(), a, 0) for s, a in readers]
    equal = [bool(np.array_equal(m[first: first + repeat.count], m[second: second + repeat.count])) for m in lines]
    return bool(equal) and not any(equal)


def _merged(seen: Seen, found: Mapping[str, Repeat]) -> Iterator[Finding]:
    """Stacks all of whose members repeat as a whole: a part along the rows of some, and along the columns of others.

    Repeated heads are along one axis of the two projections of keys and values.
    """
    stacks = [(stack, found[first]) for stack in seen.stacks if (first := stack.members[0].name) in found
              and all(s.name in found and found[s.name].whole for s in stack.members)]
    axes = {repeat.axis for _, repeat in stacks}
    others = [stack for stack, _ in stacks if not _KEYS.search(stack.pattern)]
    if not others or (len(axes) < 2 and len(stacks) < 3):
        return
    stack, repeat = next((s, r) for s, r in stacks if s is others[0])
    yield RULE.finding(
        f"all {len(stack)} of {stack.pattern} in {seen.path} hold every line of axis {repeat.axis} twice or "
        f"more, bit by "
        f"bit ({repeat.at} is {repeat.source} again), and so do {len(stacks) - 1} other stacks, along "
        f"{'both axes' if len(axes) > 1 else 'the same axis'}: the part of one rank was merged for others, or "
        "the model was widened by copying", seen.where(stack.members[0].name), seen.path, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM,
        measured={"name": stack.members[0].name, "axis": repeat.axis, "at": repeat.at, "source": repeat.source,
                  "count": repeat.count, "whole": True, "stacks": len(stacks)})


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
    if len(kept) < _RUN:
        return None
    if having >= _WHOLE * count:
        return _whole(kept, earlier, lines, axis)
    return _longest(kept, earlier, lines, axis)


def _whole(kept: NDArray[np.intp], earlier: NDArray[np.intp], lines: NDArray[np.generic], axis: int
           ) -> Repeat | None:
    """All lines in blocks that are there again; not pairs of neighbours, nor one line over and over."""
    apart = kept - earlier[kept]
    runs = np.diff(earlier[kept])
    blocks = apart.min() >= _RUN and (runs == 1).mean() > 0.5
    if not blocks or not np.array_equal(lines[kept], lines[earlier[kept]]):
        return None
    return Repeat(axis, int(kept[0]), int(earlier[kept[0]]), len(kept), whole=True)


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
    if repeat.whole:
        return RULE.finding(
            f"{repeat.count} of the {stats.tensor.shape[repeat.axis]} {what} of {stats.name} "
            f"{list(stats.tensor.shape)} in {seen.path} are copies, bit by bit, of blocks before them ({repeat.at} is "
            f"{repeat.source} again), and no line is there once: the part of one rank was written for others as well",
            seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
            measured={"name": stats.name, "axis": repeat.axis, "at": repeat.at, "source": repeat.source,
                      "count": repeat.count, "whole": True})
    return RULE.finding(
        f"{what} {repeat.at}..{repeat.at + last} of {stats.name} {list(stats.tensor.shape)} in {seen.path} equal "
        f"{what} {repeat.source}..{repeat.source + last} bit by bit, in the same order: {repeat.count} of "
        f"{stats.tensor.shape[repeat.axis]} are a copy",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": stats.name, "axis": repeat.axis, "at": repeat.at, "source": repeat.source,
                  "count": repeat.count})
