"""Weights of classes against how often each class is trained on: do they fit in another order, or upside down?

Weights that balance are made of counts: 1/n, its root, or the odds of each class against the rest. Sorted the one way
they then lie on a line against the counts sorted the other way, within what sampling leaves open. Where they do so
sorted and not as they stand, they were made in another order than the classes have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing
from traindx_tools.rules import Threshold

SURE = 5
"""Classes from which on weights of any other origin fit in no order; below that it is a sign."""
FEWEST_CLASSES, FEWEST_ROWS = 3, 10
"""Classes, and rows of the rarest one."""
SPREAD = 2.0
"""The largest weight and the largest count against the smallest, at least."""
CLOSE, FAR, SIGMAS, LEFT = 0.05, 0.7, 3.0, 0.05
"""Logarithms: what a fit may be off beside the error of sampling, and what is far off; and what may be left over of the
range of the weights, root mean square. Of 4,000 sets of random weights 56
of 3 classes fit so, 23 of 4, 8 of 5 and none of 8."""
POWERS = (-1.0, -0.5)

THRESHOLDS = {
    "close": Threshold(CLOSE, "of a logarithm, beside the error of sampling", "counts of a split"),
    "far": Threshold(FAR, "of a logarithm: twice the weight that is due", "near counts may change places"),
    "classes": Threshold(FEWEST_CLASSES, f"classes; a cause from {SURE} on", "two classes fit in some order"),
}
"""Of the rules that ask for the misfit, of any framework."""


@dataclass(frozen=True)
class Misfit:
    """`kind`: "permuted" or "inverted". `worst`: the class (by number) that is weighted most beyond its due, `times`:
    how many times; for "inverted" the most frequent class and the ratio of its weight to that of the rarest."""

    kind: str
    worst: int
    times: float
    classes: int


def misfit(weights: NDArray[np.float64], often: NDArray[np.float64],
           rows: NDArray[np.float64] | None = None) -> Misfit | None:
    """None where the weights fit the classes in their order, or do not look like made of counts at all.

    Shapes (classes,). `often`: counts, or odds of the class against the rest. `rows`: rows of each class, where `often`
    is no count. Classes without weight or without rows are left out; two equal counts may stand either way.
    """
    rows = often if rows is None else rows
    used = (weights > 0) & np.isfinite(weights) & (often > 0) & np.isfinite(often)
    if used.sum() < FEWEST_CLASSES or rows[used].min() < FEWEST_ROWS:
        return None
    w, n = np.log(weights[used]), np.log(often[used])
    if min(np.ptp(w), np.ptp(n)) < np.log(SPREAD):
        return None
    allowed = CLOSE + SIGMAS * np.sqrt(1 / rows[used])
    numbers = np.flatnonzero(used)
    if _off(w, n, 1.0, allowed).max() <= 0 and _left(w, n, 1.0) <= LEFT:
        top = int(n.argmax())
        return Misfit("inverted", int(numbers[top]), float(np.exp(w[top] - w[n.argmin()])), len(w))
    order, turned = np.argsort(n, kind="stable"), np.sort(w)[::-1]
    sorted_w = np.empty_like(w)
    sorted_w[order] = turned
    for power in POWERS:
        as_it_is = _off(w, n, power, allowed)
        if as_it_is.max() <= 0:
            return None
        far = np.abs(w - sorted_w).max() > FAR + allowed.max()
        if far and _off(sorted_w, n, power, allowed).max() <= 0 and _left(sorted_w, n, power) <= LEFT:
            worst = int((w - sorted_w).argmax())
            return Misfit("permuted", int(numbers[worst]), float(np.exp(w[worst] - sorted_w[worst])), len(w))
    return None


def _off(w: NDArray[np.float64], n: NDArray[np.float64], power: float,
         allowed: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much farther from the line w = power * n + c each class lies than is allowed."""
    rest = w - power * n
    return np.asarray(np.abs(rest - np.median(rest)) - allowed)


def bearing_of(found: Misfit) -> Bearing:
    """A cause from `SURE` classes on, else a sign."""
    return Bearing.CAUSE if found.classes >= SURE else Bearing.SIGN


def _left(w: NDArray[np.float64], n: NDArray[np.float64], power: float) -> float:
    """What the line leaves over, of the range of the weights."""
    return float((w - power * n).std() / np.ptp(w))
