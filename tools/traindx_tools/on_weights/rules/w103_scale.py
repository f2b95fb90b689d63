"""One tensor has another scale than the same tensor of the other blocks.

Measured is the root mean square, in octaves (log2), against the median of the six nearest blocks; a stack drifts from
first to last, and the neighbours carry the drift. Told are factors that the spread of the stack does not explain. Where
another tensor of the same block deviates as far the other way, the product of the two is what it should be and only the
balance is not: outputs agree, gradients, weight decay and half precision do not. Parts of the rows (a third of a joined
qkv, the upper half of a damaged matrix) and a shift of the mean are judged the same way. Without siblings only a factor
of 25 over what the matrices of the file have is told (a hundred for tables), and never one below: layers start at zero
on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.seen import Seen, Stack, apart
from traindx_tools.on_weights.statistics import SEGMENTS, Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W103",
    name="scale-against-siblings",
    title="One tensor has another scale than its siblings",
    severity=Severity.HIGH,
    sees="Root mean square, its profile over the rows, and mean of a tensor, against the same tensor of other blocks.",
    matters="The block's output, gradient or balance is off by that factor; half precision overflows or underflows "
            "there.",
    alike=("first and last blocks, which often differ", "heavy tails", "scales that grow smoothly with depth"),
    confirm=("divide the tensor by the factor in a copy and evaluate", "compare it with an earlier checkpoint"),
    thresholds={
        "inner": Threshold(3.0, "times the neighbours' root mean square", "trained stacks vary by less than two "
                                                                          "between "
                           "neighbours (GPT-2, ViT, ResNet and small models of the tests)"),
        "edge": Threshold(4.0, "times, and 12 times the usual distance, for the first and the last block",
                          "these differ from the inner ones in many trained models"),
        "balanced": Threshold(1.8, "times, where a partner deviates the other way", "two chances at once"),
        "spread": Threshold(6.0, "times the usual distance", "normal error: one in 10^9"),
        "alone": Threshold(25.0, "times the median of rms * sqrt(fan in) of the other matrices, and 12 itself",
                           "initialisers give at most 2.5; trained models stay within ten"),
        "table": Threshold(100.0, "times, for tables taller than wide", "embeddings are drawn with a deviation of one"),
    },
)
_INNER, _EDGE, _BALANCED, _SPREAD, _ALONE, _TABLE = 3.0, 4.0, 1.8, 6.0, 25.0, 100.0
_EDGE_SPREAD = 12.0
"""Usual distances by which a first or last block must differ."""
_AMPLIFIES = 12.0
"""rms * sqrt(fan in) of a matrix that stands alone: a layer that makes its input twelve times as large."""
_VECTOR = 10.0
"""Biases and scales vary more: the factor for vectors."""
_OF_ONE = 0.1
"""Root mean square of vectors that say how much passes, as the scales of norms: one near zero lets nothing through."""
_VECTOR_AT_EDGE = 40.0
"""The bias of a first convolution with a norm folded in is that small: its inputs have a mean near zero."""
_VALUES = 128
"""Values that are not 0 in a part of the rows: of fewer, chance makes the scale."""
_TELLING = 1e-3
"""Root mean square of a vector below which its scale says nothing: biases begin at zero."""


@dataclass(frozen=True)
class _Off:
    """A member of a stack and by how many octaves it is off."""

    stack: Stack
    at: int
    octaves: float
    spread: float

    @property
    def stats(self) -> Stats:
        return self.stack.members[self.at]

    @property
    def factor(self) -> float:
        return float(2.0 ** abs(self.octaves))

    @property
    def block(self) -> int:
        return self.stack.indexes[self.at]

    @property
    def edge(self) -> bool:
        return self.at in (0, len(self.stack) - 1)


def check(seen: Seen) -> Iterator[Finding]:
    """Stacks first; matrices without siblings against all of the file."""
    off = [o for stack in seen.stacks for o in _off(seen, stack)]
    blocks: dict[int, list[_Off]] = {}
    for one in off:
        blocks.setdefault(one.block, []).append(one)
    told: set[str] = set()
    for one in off:
        partner = next((o for o in blocks[one.block] if _balance(one, o)), None)
        if one.stats.name in told:
            continue
        if partner is not None and one.factor >= _BALANCED:
            told |= {one.stats.name, partner.stats.name}
            yield _balanced(seen, one, partner)
        elif one.factor >= _least(one):
            told.add(one.stats.name)
            yield _scaled(seen, one)
    for stack in seen.stacks:
        yield from (f for f in (*_segments(seen, stack, told), *_shifted(seen, stack)))
    yield from _alone(seen, told)


def _least(one: _Off) -> float:
    if not one.stats.tensor.matrix:
        return _VECTOR_AT_EDGE if one.edge else _VECTOR
    return max(_EDGE, float(2.0 ** (_EDGE_SPREAD * one.spread))) if one.edge else _INNER


def _off(seen: Seen, stack: Stack) -> Iterator[_Off]:
    """The members whose scale the spread of the stack does not explain; not those that are a constant."""
    if any(seen.is_table(s) for s in stack.members[:1]):
        return
    scales = float(np.median([s.rms for s in stack.members])) > _OF_ONE
    usable = [s.rms > 0 and s.finite > 0 and (s.tensor.matrix or scales or s.rms > _TELLING) for s in stack.members]
    if not all(usable) and sum(usable) < len(stack) - 1:
        return
    values = np.array([math.log2(s.rms) if ok else np.nan for s, ok in zip(stack.members, usable, strict=True)])
    values = np.where(np.isnan(values), np.nanmedian(values), values)
    distance, spread = apart(values, 0.08)
    many = np.abs(distance) > max(_SPREAD * spread, math.log2(_BALANCED))
    if many.sum() > max(1, len(stack) // 4):
        return
    yield from (_Off(stack, int(i), float(distance[i]), spread) for i in np.flatnonzero(many))


def _balance(one: _Off, other: _Off) -> bool:
    """Whether another tensor of the same block is off by as much the other way."""
    return (one is not other and one.block == other.block
            and one.octaves * other.octaves < 0 and one.stats.tensor.matrix and other.stats.tensor.matrix
            and abs(one.octaves + other.octaves) < 0.25 * abs(one.octaves) + 0.1)


def _balanced(seen: Seen, one: _Off, other: _Off) -> Finding:
    large, small = sorted((one, other), key=lambda o: -o.octaves)
    return RULE.finding(
        f"{large.stats.name} in {seen.path} is {large.factor:.3g} times as large as in its neighbours and "
        f"{small.stats.name} {small.factor:.3g} times as small ({len(one.stack)} blocks): their product is as in the "
        "other blocks, their balance is not",
        seen.where(large.stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": large.stats.name, "partner": small.stats.name, "factor": round(large.factor, 4),
                  "kind": "balanced", "blocks": len(one.stack)})


def _scaled(seen: Seen, one: _Off) -> Finding:
    way = "large" if one.octaves > 0 else "small"
    return RULE.finding(
        f"{one.stats.name} in {seen.path} is {one.factor:.3g} times as {way} as in its neighbours (root mean square "
        f"{one.stats.rms:.3g}; {len(one.stack)} blocks of {one.stack.pattern}, which usually differ by "
        f"{2 ** one.spread:.2f} times)",
        seen.where(one.stats.name), seen.path, bearing=Bearing.CAUSE,
        severity=None if one.stats.tensor.matrix else Severity.MEDIUM,
        measured={"name": one.stats.name, "factor": round(2.0**one.octaves, 6), "rms": one.stats.rms, "kind": "scaled",
                  "blocks": len(one.stack)})


def _segments(seen: Seen, stack: Stack, told: set[str]) -> Iterator[Finding]:
    """A part of the rows of one member that is scaled or zero where it is not in the others."""
    first = stack.members[0]
    if not first.tensor.matrix or first.size / SEGMENTS < _VALUES:
        return
    profiles = [s.profile / s.rms if s.rms > 0 and len(s.profile) else np.zeros(0) for s in stack.members]
    values = first.size / SEGMENTS * (1 - max(s.zero_share for s in stack.members))
    if any(len(p) != SEGMENTS for p in profiles) or values < _VALUES:
        return
    table = np.log2(np.maximum(np.array(profiles), 2.0**-20))
    centre = np.median(table, axis=0)
    distance = table - centre
    spread = max(0.15, 1.4826 * float(np.median(np.abs(distance))))
    strange = np.abs(distance) > max(math.log2(_INNER), 8.0 * spread)
    odd = np.flatnonzero(strange.any(axis=1))
    if len(odd) > max(1, len(stack) // 4):
        return
    for at in odd:
        stats = stack.members[at]
        if stats.name in told or strange[at].all():
            continue
        parts = np.flatnonzero(strange[at])
        height = stats.tensor.rows // SEGMENTS
        rows = f"{parts[0] * height}-{(parts[-1] + 1) * height - 1}"
        worst = float(distance[at][parts[np.argmax(np.abs(distance[at][parts]))]])
        told.add(stats.name)
        yield RULE.finding(
            f"rows {rows} of {stats.name} in {seen.path} are {_times(worst)} in the other {len(stack) - 1} blocks of "
            f"{stack.pattern}, beside the rest of the tensor",
            seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
            measured={"name": stats.name, "rows": rows, "factor": round(2.0**worst, 6), "kind": "rows"})


def _times(octaves: float) -> str:
    return "zero and are not" if octaves <= -15 else (
        f"{2.0 ** abs(octaves):.3g} times as {'large' if octaves > 0 else 'small'} as")


def _shifted(seen: Seen, stack: Stack) -> Iterator[Finding]:
    """A member whose mean is as large as its spread where the others' is near zero."""
    if not stack.members[0].tensor.matrix or any(s.deviation == 0 for s in stack.members):
        return
    share = np.array([s.mean / s.deviation for s in stack.members])
    strange = np.abs(share - np.median(share)) > 0.5
    if strange.sum() != 1 or np.abs(share[~strange]).max() > 0.15:
        return
    stats = stack.members[int(np.argmax(strange))]
    yield RULE.finding(
        f"{stats.name} in {seen.path} has a mean of {stats.mean:.3g} beside a spread of {stats.deviation:.3g}; in the "
        f"other {len(stack) - 1} blocks of {stack.pattern} the mean is near zero",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": stats.name, "mean": stats.mean, "deviation": stats.deviation, "kind": "shifted"})


def _alone(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """Matrices far above all others of the file, each in units of its fan in."""
    units = {s.name: s.rms * math.sqrt(s.size / s.tensor.shape[0]) for s in seen.weights if s.rms > 0}
    if len(units) < 2:
        return
    in_order = np.sort(list(units.values()))
    trained = {s.tensor.shape for m in seen.moments for s in m.stats.values()}
    """Shapes of what the optimizer keeps moments of: a matrix of none of them is drawn once (a random projection)."""
    for stats in (s for s in seen.weights if s.name in units):
        unit = units[stats.name]
        middle = _median_of_others(in_order, unit)
        least = _TABLE if is_embedding(stats) or len(units) < 4 else _ALONE
        apart_from_all = unit > least * middle and unit > _AMPLIFIES
        fixed = bool(trained) and stats.tensor.shape not in trained
        usual = stats.name in told or stats.name in seen.stack_of or fixed
        if apart_from_all and not usual and all(stats is not w.sums for w in seen.weighted_sums):
            yield RULE.finding(
                f"{stats.name} in {seen.path} is larger than the other matrices by orders of magnitude: rms * "
                f"sqrt(fan in) is {unit:.3g}, their median {middle:.3g}",
                seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
                measured={"name": stats.name, "factor": round(unit / middle, 3), "rms": stats.rms, "kind": "alone"})


def _median_of_others(in_order: NDArray[np.float64], value: float) -> float:
    """The median of sorted values without `value`, one of them."""
    own, count = int(np.searchsorted(in_order, value)), len(in_order) - 1
    middle = [in_order[i + (i >= own)] for i in ((count - 1) // 2, count // 2)]
    return float(np.mean(middle))
