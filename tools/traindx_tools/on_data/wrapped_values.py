"""Values of one part that wrapped around in a type too small for them, told by the other parts that have room.

In the order of rows nothing tells such a value: events are drawn one by one. What tells it is where the values lie. The
others pass the edge of the small type again and again, this part never does; instead it comes to the opposite edge,
where the others have nothing, and its values are distributed as those of the others would be in that type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, distance

FEWEST = 12
"""Values of a part at the wrong side, and values of the others beyond the edge."""
NEAR = 0.1
"""Of half of the range, within which both extremes of the part lie of the edges."""
ALIKE = 0.08
"""Distance of the distributions, beyond sampling, of the part and of the others in the small type."""
RANGES = (2.0**8, 2.0**16, 2.0**32)
MOST_FEATURES = 64


@dataclass(frozen=True)
class WrappedValues:
    """A part whose values wrapped. `features`: in which they did, `count`: rows that hold one, `lowest`: of the others.
    """

    part: int
    full: float
    features: tuple[int, ...]
    rows: Array
    lowest: float
    highest: float


def wrapped_values(values: Array, member: Array, parts: int, comparisons: float) -> Iterator[WrappedValues]:
    """The parts that wrapped. `values`: float64 shape (rows, features) of whole numbers; `member`: of each row."""
    values = values[:, :MOST_FEATURES]
    for part in range(parts):
        mine, others = values[member == part], values[(member >= 0) & (member != part)]
        if len(mine) < FEWEST or len(others) < FEWEST:
            continue
        for full in RANGES:
            if not _fills(mine, full) or not (others.max() >= full / 2 or others.min() < -full / 2):
                continue
            seen = {k: at for k in range(values.shape[1]) if (at := _wrapped(
                mine[:, k], others[:, k], full, comparisons * parts * values.shape[1] * len(RANGES))) is not None}
            if seen:
                rows = np.flatnonzero(np.stack(list(seen.values())).any(axis=0))
                inner = others[:, list(seen)]
                yield WrappedValues(part, full, tuple(seen), np.flatnonzero(member == part)[rows],
                                    float(inner.min()), float(inner.max()))


def _fills(values: Array, full: float) -> bool:
    """Whether values stay within a signed type of this range and come near to both of its edges."""
    low, high, half = float(values.min()), float(values.max()), full / 2
    return -half <= low <= -(1.0 - NEAR) * half and (1.0 - NEAR) * half <= high < half


def _wrapped(mine: Array, others: Array, full: float, comparisons: float) -> Array | None:
    """bool shape (rows,): where a feature holds what the others never do; None where it did not wrap."""
    half = full / 2
    up = bool((others >= half).sum() >= (others < -half).sum())
    beyond = (others >= half) if up else (others < -half)
    low, high = min(0.0, float(others.min())) - NEAR * half, max(0.0, float(others.max())) + NEAR * half
    odd = mine < low if up else mine > high
    if beyond.sum() < FEWEST or odd.sum() < FEWEST or not _fills(mine, full):
        return None
    chance = len(mine) * math.log1p(-min(0.999, float(beyond.mean()))) + math.log(comparisons)
    return odd if chance < math.log(LEVEL) and _distributed_alike(mine, _in_type(others, full)) else None


def _in_type(values: Array, full: float) -> Array:
    return np.asarray((values + full / 2) % full - full / 2)


def _distributed_alike(one: Array, other: Array) -> bool:
    sampling = 1.63 * math.sqrt(1.0 / len(one) + 1.0 / len(other))
    return distance(np.sort(one), np.sort(other)) <= ALIKE + sampling


def told_features(features: Sequence[int], of: int) -> str:
    """`places 2 to 9 of ` of a row of numbers, "" of a single one."""
    if of == 1:
        return ""
    first, last = features[0], features[-1]
    together = len(features) == last - first + 1
    return f"place {first} of " if first == last else f"places {first} to {last} of " if together else (
        f"{len(features)} places of ")
