"""The parts of a packed tensor of one layer stand in another order than in all other layers.

A recurrent layer keeps its gates behind each other in one matrix, an attention query, key and value, a gated layer its
two halves. Libraries have orders of their own (i, f, g, o; i, f, o, g; z, r, h). Level, scale and spread of each part
are learnt from the other layers; where a layer is as they are only after its parts change places, it was converted
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_PARTS = (4, 3, 2)
_FEWEST = 3
_WIDTH = 16
_MOST_BYTES = 2**22
"""Of vectors that are held; matrices are judged by the norms of their rows, which are known."""
_OFF, _FITS, _SURE = 6.0, 2.5, 4.0
_FLOOR = 0.1

RULE = Rule(
    id="W131",
    name="parts-in-order",
    title="The parts of a packed tensor stand in another order in one layer",
    severity=Severity.HIGH,
    sees="level and scale of each half, third or quarter of the rows, against the same parts of the other layers",
    matters="Gates, or queries and keys, do each other's work in this layer: its output is noise.",
    alike=("layers whose parts differ by nature, or not at all: nothing is said",
           "a part that is scaled: no order of the parts undoes it"),
    confirm=("put the parts in the named order and evaluate", "compare with the converter of the other layers"),
    thresholds={
        "off": Threshold(_OFF, "spreads", "of the parts in the other layers, that one is off as it stands"),
        "fits": Threshold(_FITS, "spreads", "at most, after its parts change places"),
        "sure": Threshold(_SURE, "times", "as far off before as after"),
        "layers": Threshold(_FEWEST, "layers", "of which one can be told"),
    },
)


@dataclass(frozen=True)
class _Moved:
    name: str
    order: tuple[int, ...]
    """Where each part of the other layers is in this one."""
    before: float
    after: float


def check(seen: Seen) -> Iterator[Finding]:
    """One finding a layer: of its tensors the one that is furthest off."""
    found: dict[str, list[_Moved]] = {}
    for stack in seen.stacks_from(_FEWEST):
        for moved in _of_stack(stack):
            found.setdefault(_layer(moved.name), []).append(moved)
            break
    for same in found.values():
        best = max(same, key=lambda m: m.before)
        also = [m.name for m in same if m.order == best.order and m is not best]
        yield RULE.finding(
            f"the {len(best.order)} parts of {best.name} in {seen.path} stand in another order than in the other "
            f"layers: theirs are its parts {', '.join(str(p) for p in best.order)} (level and scale are "
            f"{best.before:.1f} spreads of the other layers off as they stand, {best.after:.1f} in that order)"
            + (f"; so do those of {', '.join(also[:3])}" if also else ""),
            seen.where(best.name), seen.path, bearing=Bearing.CAUSE,
            measured={"kind": "order", "name": best.name, "order": ",".join(map(str, best.order)),
                      "before": round(best.before, 2), "after": round(best.after, 2)})


def _layer(name: str) -> str:
    """The name with its numbers alone: weights and biases of one layer share them."""
    import re

    return "/".join(re.findall(r"\d+", name))


def _of_stack(stack: Stack) -> Iterator[_Moved]:
    first = stack.members[0]
    rows = first.tensor.shape[0] if first.tensor.shape else 0
    if any(s.nan + s.inf or s.constant or (not s.tensor.matrix and s.tensor.nbytes > _MOST_BYTES)
           or len(s.row_squares) != (rows if s.tensor.matrix else 1) for s in stack.members):
        return
    for parts in _PARTS:
        if rows % parts == 0 and rows // parts >= _WIDTH:
            table = np.stack([_of_rows(s, parts) if s.tensor.matrix else
                              _measured(s.tensor.load().astype(np.float64), parts) for s in stack.members])
            moved = _odd(table)
            if moved is not None:
                at, order, before, after = moved
                yield _Moved(stack.members[at].name, order, before, after)


def _of_rows(stats: Stats, parts: int) -> NDArray[np.float64]:
    """float64 shape (parts, 3): the same of a matrix, from the sums of squares of its rows: its scale alone."""
    squares = stats.row_squares.reshape(parts, -1).mean(axis=1)
    none = np.zeros(parts)
    return np.stack([none, np.log(np.maximum(squares, 1e-300)) / 2, none], axis=1)


def _measured(values: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """float64 shape (parts, 3): mean in spreads of the whole, logarithm of the spread, and of the mean magnitude's
    share of it."""
    cut = values.reshape(parts, -1)
    spread = np.maximum(cut.std(axis=1), 1e-12)
    whole = max(1e-12, float(values.std()))
    return np.stack([cut.mean(axis=1) / whole, np.log(spread), np.log(np.abs(cut).mean(axis=1) / spread + 1e-3)],
                    axis=1)


def _odd(table: NDArray[np.float64]) -> tuple[int, tuple[int, ...], float, float] | None:
    """The one member whose parts fit the others' in another order. `table`: shape (members, parts, measures)."""
    members, parts, _ = table.shape
    table = table.copy()
    table[:, :, 1] -= table[:, :, 1].mean(axis=1, keepdims=True)  # each layer has a scale of its own
    orders = list(permutations(range(parts)))
    found = []
    for at in range(members):
        others = np.delete(table, at, axis=0)
        centre, spread = _usual(others)
        costs = np.array([_cost(table[at][list(o)], centre, spread) for o in orders])
        order = orders[int(costs.argmin())]
        before, after = float(costs[0]), float(costs.min())
        if before >= _OFF and after <= _FITS and after * _SURE <= before and _keep(others, order):
            found.append((at, order, before, after))
    return max(found, key=lambda f: f[2]) if found else None


def _usual(others: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centre = np.median(others, axis=0)
    return centre, np.maximum(_FLOOR, np.abs(others - centre).max(axis=(0, 1)))


def _keep(others: NDArray[np.float64], order: tuple[int, ...]) -> bool:
    """Whether each of the others is as the rest as it stands, and is not in that order."""
    _, spread = _usual(others)
    for at, parts in enumerate(others):
        centre = np.median(np.delete(others, at, axis=0), axis=0)
        if _cost(parts, centre, spread) > _FITS or _cost(parts[list(order)], centre, spread) < _OFF:
            return False
    return True


def _cost(parts: NDArray[np.float64], centre: NDArray[np.float64], spread: NDArray[np.float64]) -> float:
    """The largest distance of a part's measure, in spreads."""
    return float((np.abs(parts - centre) / spread).max())
