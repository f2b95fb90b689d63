"""Between two checkpoints of one run the values of a tensor are there again, in other places.

Training moves values a little at a time: each row stays more like itself than like any other. Where a tensor is close
to the transpose of its earlier self, where its rows or columns are close to others' earlier selves, or where two
tensors have exchanged their values, the arrangement was changed by whoever wrote the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.common_factor import known_factor, steps_of
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.sampled_order import sampled_order
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W119",
    name="rearranged",
    title="The values of a tensor stand in other places than in the other checkpoint",
    severity=Severity.HIGH,
    sees="Correlation of each tensor with its earlier self, its transpose, its rows and columns in another order, and "
         "tensors of the same shape.",
    matters="Units no longer meet the weights that they were trained with: the output is noise.",
    alike=("a model converted to another layout throughout", "units sorted on purpose with all tensors that meet them"),
    confirm=("undo the named change and evaluate", "compare with a third checkpoint"),
    thresholds={
        "like": Threshold(0.9, "correlation after the change", "checkpoints of one run are that near"),
        "unlike": Threshold(0.5, "correlation as it stands", "far below what training leaves"),
        "moved": Threshold(0.1, "relative change", "below, few lines can have changed places"),
        "times": Threshold(3.0, "times the median change of the weights", "what moved as the others did was trained"),
    },
)
_LIKE, _UNLIKE, _NEAR, _MOVED, _TIMES = 0.9, 0.5, 0.99, 0.1, 3.0
_APART = 0.4
"""By how much the transpose is more alike than the matrix itself, which may be nearly symmetric."""
_SCALED = 0.25
"""Share by which the norm differs from which on the values were multiplied too."""
_FEWEST = 4
"""Rows that changed their places."""
_OFFSETS = 6
"""Distances by which blocks of rows moved, up to which they are listed: parts of a packed matrix."""
MOST_BYTES, MOST_LINES = 2**25, 1024
"""Of tensors whose rows are compared; lines of an axis."""


def check(seen: Seen) -> Iterator[Finding]:
    """Every matrix that moved far; tables of the same rows are told together."""
    if seen.other is not None and seen.main:
        yield from _renumbered(seen, list(_found(seen, seen.other)))


def _renumbered(seen: Seen, found: Sequence[Finding]) -> Iterator[Finding]:
    """Rows of a vocabulary: where all tables of as many rows were put in one order it is a new numbering, by design.

    Where one was and another one was not, the model reads and writes different words by the same number.
    """
    for one in found:
        name = str(one.measured["name"])
        rows = seen.part.tensors[name].shape[:1] if name in seen.part.tensors else ()
        tables = [n for n, t in seen.part.tensors.items() if t.matrix and t.shape[:1] == rows and n != name
                  and len(t.shape) == 2 and rows[0] > 2 * t.shape[1] - 1 and seen.changes.get(n) is not None]
        if one.measured["kind"] != "rows" or not tables or rows[0] < 2 * seen.part.tensors[name].shape[1]:
            yield one
            continue
        same = [o for o in found if o is not one and o.measured["name"] in tables
                and o.measured.get("order") == one.measured.get("order")]
        if len(same) == len(tables):
            said = f"{one.statement}; all tables of as many rows were put in the same order: a new numbering"
            yield replace(one, severity=Severity.INFO, statement=said)
        else:
            left = [n for n in tables if n not in {o.measured["name"] for o in same}]
            yield replace(one, statement=f"{one.statement}; {', '.join(left[:2])}, with as many rows, "
                                         f"{'was' if len(left) == 1 else 'were'} not put in that order")


def _found(seen: Seen, other: Seen) -> Iterator[Finding]:
    moves = [c for n, c in seen.changes.items() if n in {s.name for s in seen.weights} and np.isfinite(c)]
    least = max(_MOVED, _TIMES * float(np.median(moves))) if moves else np.inf
    pairs = [(seen.stats[a], other.stats[b]) for a, b in match(seen.part.tensors, other.part.tensors).pairs
             if a in seen.stats and b in other.stats and seen.changes.get(a, 0.0) > least]
    pairs = [(a, b) for a, b in pairs if a.tensor.matrix and a.size >= 64 and not (a.constant or b.constant)]
    told: set[str] = set()
    for one, later in pairs:
        alike = _correlation(one.sample, later.sample)
        if one.name in told or alike > _NEAR:
            continue
        partner = _exchanged(one, later, pairs) if alike < _UNLIKE else None
        if partner is not None:
            told |= {one.name, partner}
            yield _finding(seen, one.name, f"{one.name} and {partner} have exchanged their values", "exchanged")
        else:
            yield from _within(seen, one, later)


def _correlation(x: NDArray[np.floating], y: NDArray[np.floating]) -> float:
    x, y = x.astype(np.float64).reshape(-1), y.astype(np.float64).reshape(-1)
    if x.shape != y.shape or not len(x) or not np.isfinite(x + y).all() or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _exchanged(one: Stats, later: Stats, pairs: list[tuple[Stats, Stats]]) -> str | None:
    """The tensor whose earlier values this one has, and which has this one's."""
    for other, other_later in pairs:
        if other is not one and other.tensor.shape == one.tensor.shape and (
                _correlation(one.sample, other_later.sample) > _LIKE
                and _correlation(other.sample, later.sample) > _LIKE):
            return other.name
    return None


def _within(seen: Seen, one: Stats, later: Stats) -> Iterator[Finding]:
    if one.nan + one.inf + later.nan + later.inf:
        return
    if max(one.tensor.nbytes, later.tensor.nbytes) > MOST_BYTES or max(one.tensor.shape[:2]) > MOST_LINES:
        yield from _of_sample(seen, one, later)
        return
    a, b = one.tensor.load().astype(np.float64), later.tensor.load().astype(np.float64)
    if a.ndim == 2 and a.shape[0] == a.shape[1] and _correlation(a.T, b) > _LIKE > _correlation(a, b) + _APART:
        yield _finding(seen, one.name, f"{one.name} {list(a.shape)} is the transpose of itself", "transposed", later)
        return
    for axis in range(min(2, a.ndim)):
        order = _order(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0))
        if order is not None:
            moved = np.flatnonzero(order != np.arange(len(order)))
            first = int(moved[0])
            what = ("rows", "columns")[axis]
            yield _finding(seen, one.name, f"{len(moved)} of the {len(order)} {what} of {one.name} stand in other "
                           f"places (what was {what[:-1]} {first} is {what[:-1]} {int(order[first])}"
                           f"{_blocks(order)})", what, later, hash(tuple(order.tolist())))
            return


def _of_sample(seen: Seen, one: Stats, later: Stats) -> Iterator[Finding]:
    """Some rows of a large matrix, looked for among all rows; columns where it can be held."""
    for axis, what in enumerate(("rows", "columns")):
        found = sampled_order(one.tensor, later.tensor, axis)
        moved = [p for p in found if p.at != p.to and p.own < _UNLIKE]
        certain = sum(p.like > _LIKE for p in found)
        if certain <= 0.9 * len(found) or len({p.to for p in found}) < len(found) or len(moved) < _FEWEST:
            continue
        offsets = sorted({p.to - p.at for p in moved})
        by = f", by {' or '.join(f'{o:+d}' for o in offsets)}" if len(offsets) <= _OFFSETS else ""
        lines = one.tensor.shape[axis]
        yield _finding(seen, one.name, f"{len(moved)} of {len(found)} {what} of {one.name} that were looked at (of "
                       f"{lines:,}) stand in other places (what was {what[:-1]} {moved[0].at} is {what[:-1]} "
                       f"{moved[0].to}{by})", what, later, hash(tuple((p.at, p.to) for p in found)))
        return


def _order(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.intp] | None:
    """Where each line of `a` is in `b`: a permutation that is not the identity, and certain; None where there is none.
    """
    a, b = (x.reshape(len(x), -1) for x in (a, b))
    if not 2 * _FEWEST <= len(a) <= MOST_LINES or a.shape[1] < 8:
        return None
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (a, b))
    likeness = a @ b.T
    order = likeness.argmax(axis=1)
    certain = likeness[np.arange(len(a)), order] > _LIKE
    own = np.diag(likeness)
    moved = (order != np.arange(len(a))) & (own < _UNLIKE)
    good = certain.mean() > 0.9 and len(np.unique(order)) == len(order) and moved.sum() >= _FEWEST
    return order if good else None


def _blocks(order: NDArray[np.intp]) -> str:
    """The length of the blocks that moved together, such as heads."""
    moved = order != np.arange(len(order))
    cuts = np.flatnonzero((np.diff(order) != 1) | (np.diff(moved.astype(int)) != 0)) + 1
    lengths = {len(p) for p in np.split(order, cuts) if moved[np.flatnonzero(order == p[0])[0]]}
    return f", in blocks of {min(lengths)}" if len(lengths) == 1 and min(lengths) > 1 else ""


def _finding(seen: Seen, name: str, what: str, kind: str, later: Stats | None = None, order: int = 0) -> Finding:
    """`later`: the tensor's other self, whose norm tells whether it was scaled as well. `order`: equal for equal ones.
    """
    assert seen.other is not None
    one = seen.stats[name]
    factor = later.rms / one.rms if later is not None and one.rms > 0 else 1.0
    scaled = abs(factor - 1) > _SCALED
    known = known_factor(factor, 1e-3, steps_of([seen.checkpoint, seen.other.checkpoint])) if scaled else ""
    times = f", times {factor:.4g}{f' ({known})' if known else ''}," if scaled else ""
    return RULE.finding(
        f"{what}{times} between {seen.path} and {seen.other.path}", seen.where(name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": kind, "name": name, "factor": round(factor, 6), "order": order})
