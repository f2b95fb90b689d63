"""Some units of one tensor are orders of magnitude below or above the rest of it, or some of its columns are equal.

Units are rows (output units, filters, heads, tokens) and columns (what comes in). Norms within a trained tensor spread
by less than ten, with no gap. A group that a gap of ten parts from the rest, a hundred away, is dead or collapsed, or
was written by something else. Told is what few of the matrices of a model show: where many do, units die in training
(weight decay behind a rectifier), filters were pruned, or a few channels carry all of it in each layer. The scale and
the running variance of the normalisation beside it say the same of the same channels where the group is dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.columns import equal_columns
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.seen import Seen, load_tensor
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W126",
    name="unit-scale",
    title="Some units of a layer are of another scale than the rest",
    severity=Severity.MEDIUM,
    sees="Norms of rows, and of columns over a few rows, within each matrix, and vectors beside.",
    matters="Collapsed units pass nothing on; units that are far too large drown all others.",
    alike=("pruned filters (in every layer, or beside a mask)", "channels that are large in each layer",
           "rare tokens of an embedding", "units that died in training, some in each layer"),
    confirm=("compare the units with an earlier checkpoint", "count the units that are ever active on a batch"),
    thresholds={
        "far": Threshold(100.0, "times the median norm of the other units", "trained tensors stay within ten"),
        "gap": Threshold(10.0, "times, between the group and the rest", "a tail has no gap"),
        "few": Threshold(0.25, "share of the matrices that show it", "more is how the model was trained or pruned"),
    },
)
_FAR, _GAP, _FEW, _MOST, _EQUAL = 2.0, 1.0, 0.25, 0.5, 0.05
_WIDTH, _UNITS = 8, 8
_PRUNED = 0.3
"""Share of zeros from which a matrix is taken as pruned: what is left of a row is chance."""
_BESIDE = 6
"""Tensors behind a weight among which its normalisation is looked for."""


@dataclass(frozen=True)
class Apart:
    """Units of one axis that a gap parts from the rest. `octaves` of ten: how far the middle of them is off."""

    axis: int
    units: NDArray[np.intp]
    of: int
    decades: float

    @property
    def low(self) -> bool:
        """Whether they are below the rest."""
        return self.decades < 0


def check(seen: Seen) -> Iterator[Finding]:
    """All matrices of weights, both axes; what many of them show is design."""
    matrices = [s for s in seen.weights if s.tensor.floating and not s.constant and not s.nan and not s.inf
                and (not len(s.sample) or float(np.mean(s.sample == 0)) <= _PRUNED)]
    found = {(s.name, a.axis): (s, a) for s in matrices for a in _units(s)}
    for low in (True, False):
        own = [(s, a) for s, a in found.values() if a.low is low]
        if len({s.name for s, _ in own}) > max(1, _FEW * len(matrices)) or _masked(seen):
            continue
        for stats, group in own:
            stack = seen.stack_of.get(stats.name)
            alike = sum((m.name, group.axis) in found for m in stack.members) if stack is not None else 1
            if stack is None or alike <= max(1, _FEW * len(stack)):
                yield _finding(seen, stats, group)
    yield from _equal(seen, matrices)


def _masked(seen: Seen) -> bool:
    """Whether masks beside the weights document that units were taken out."""
    return any("mask" in n.rpartition(".")[2].lower() and t.matrix for n, t in seen.part.tensors.items())


def _units(stats: Stats) -> Iterator[Apart]:
    tensor = stats.tensor
    width = tensor.size // max(1, tensor.rows)
    if len(stats.row_squares) == tensor.rows and width >= _WIDTH and not is_embedding(stats):
        yield from _parted(np.sqrt(stats.row_squares), 0)
    columns = stats.columns
    if columns.values >= _WIDTH:
        yield from _parted(np.sqrt(columns.squares), 1)


def _parted(norms: NDArray[np.float64], axis: int) -> Iterator[Apart]:
    """The units below and those above a gap; units of zeros are those of W105, which tells them, and no part of this.
    """
    known = np.flatnonzero(norms > 0)
    if len(known) < _UNITS or not np.isfinite(norms).all():
        return
    logs = np.log10(norms[known])
    order = np.argsort(logs)
    gaps = np.diff(logs[order])
    at = int(gaps.argmax()) + 1
    if gaps[at - 1] < _GAP:
        return
    small = at <= len(order) * _MOST
    group, rest = (order[:at], order[at:]) if small else (order[at:], order[:at])
    decades = float(np.median(logs[group]) - np.median(logs[rest]))
    if abs(decades) >= _FAR and (len(group) >= 2 or decades < 0):
        yield Apart(axis, np.sort(known[group]), len(norms), decades)


def _finding(seen: Seen, stats: Stats, group: Apart) -> Finding:
    what = ("rows", "columns")[group.axis]
    listed = ", ".join(str(int(i)) for i in group.units[:6])
    more = f" and {len(group.units) - 6} more" if len(group.units) > 6 else ""
    beside = _beside(seen, stats, group) if group.axis == 0 and group.low else []
    also = f"; so are these channels of {' and '.join(beside)}" if beside else ""
    size = f"{10**abs(group.decades):.3g} times {'smaller' if group.low else 'larger'}"
    return RULE.finding(
        f"{len(group.units)} of the {group.of:,} {what} of {stats.name} in {seen.path} ({listed}{more}) are {size} "
        f"than the others, with nothing between{also}; few other matrices show any",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
        severity=Severity.HIGH if 4 * len(group.units) >= group.of else
        Severity.INFO if len(group.units) == 1 and not beside else None,
        measured={"name": stats.name, "kind": "low" if group.low else "high", "axis": group.axis,
                  "units": len(group.units), "of": group.of, "factor": float(10**group.decades),
                  "beside": tuple(beside)})


def _beside(seen: Seen, stats: Stats, group: Apart) -> list[str]:
    """Vectors behind the weight that are near zero at the same units and nowhere else."""
    at = next((i for i, s in enumerate(seen.floats) if s is stats), len(seen.floats))
    found = []
    for vector in seen.floats[at + 1: at + 1 + _BESIDE]:
        if vector.tensor.matrix or vector.size != group.of:
            continue
        values = load_tensor(vector.tensor, 2**24)
        if values is None or not np.isfinite(values).all():
            continue
        sizes = np.abs(values.reshape(-1))
        others = np.delete(sizes, group.units)
        if len(others) and np.median(sizes[group.units]) < 0.01 * np.median(others):
            found.append(vector.name)
    return found


def _equal(seen: Seen, matrices: Sequence[Stats]) -> Iterator[Finding]:
    """Columns that equal an earlier one, against the share of them in the siblings."""
    shares = {s.name: (found := equal_columns(s.columns), len(found) / max(1, len(s.columns.keys)))
              for s in matrices}
    if sum(len(f) > 1 for f, _ in shares.values()) > max(1, _FEW * len(matrices)):
        return
    highest = {  # two of each stack are enough: a matrix itself and the most of the others
        stack.members[0].name: nlargest(2, ((shares[m.name][1], m.name) for m in stack.members if m.name in shares))
        for stack in seen.stacks}
    for stats in matrices:
        found, share = shares[stats.name]
        if len(found) < 2:
            continue
        stack = seen.stack_of.get(stats.name)
        tops = highest[stack.members[0].name] if stack else []
        usual = max((top for top, name in tops if name != stats.name), default=0.0)
        runs = np.diff(found)
        if share <= usual + _EQUAL or (stack is None and share < _FEW) or (
                len(found) > 3 and (runs == 1).mean() > 0.7):  # blocks in a row are W117's
            continue
        listed = ", ".join(str(int(i)) for i in found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
        yield RULE.finding(
            f"{len(found)} of the {len(stats.columns.keys):,} columns of {stats.name} in {seen.path} "
            f"({listed}) equal an "
            f"earlier one in all {stats.columns.values} values that were looked at; other matrices show none",
            seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
            measured={"name": stats.name, "kind": "equal", "axis": 1, "units": len(found),
                      "of": len(stats.columns.keys)})
