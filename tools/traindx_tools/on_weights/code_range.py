"""How much of the range of eight bits the codes of a matrix use, and how large it is once it is restored.

A scale of a line is its largest magnitude over the largest code, so that each line of codes comes to the end. Codes
that were made for fewer bits have larger scales, and restore to what they were made of. Beside scales that were made
for the whole range the matrix comes out too small, as no sibling is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.quantised import Quantised

FEWEST_OTHERS = 6
PART = 0.25
"""Of the largest code of the other matrices, that those of one come to at most."""
FULL = 0.9
"""Of that range, that the codes of each of the others come to."""
SMALLER = math.log(3.0)
"""Logarithm of how many times smaller the restored matrix is than the smallest of its siblings."""


@dataclass(frozen=True)
class FewCodes:
    """A matrix whose codes come to `largest` where those of the others come to `usual`; `times` smaller than siblings.
    """

    one: Quantised
    largest: int
    usual: int
    times: float
    others: int


def few_codes(made: Sequence[Quantised]) -> Iterator[FewCodes]:
    """The matrices whose codes use a part of the range, of a file in which all others use it."""
    tops = {id(q): float(np.abs(q.codes()).max()) for q in made} if len(made) > FEWEST_OTHERS else {}
    usual = float(np.median(list(tops.values()))) if tops else 0.0
    odd = [q for q in made if tops and 0 < tops[id(q)] <= PART * usual]
    rest = [q for q in made if tops and q not in odd]
    if not odd or len(odd) > len(made) / 4 or any(tops[id(q)] < FULL * usual for q in rest):
        return
    for one in odd:
        alike = [q for q in rest if q.shape == one.shape]
        alike = alike if len(alike) >= 3 else rest
        size = _size(one)
        least = min(map(_size, alike))
        if size < least - SMALLER:
            times = math.exp(float(np.median([_size(q) for q in alike])) - size)
            yield FewCodes(one, int(tops[id(one)]), int(usual), times, len(rest))


ONE, VARY, FEWEST_VARYING = 1e-3, 0.1, 3
"""Of the largest scale: what those that are one number may differ in, and what those of the others do at least."""
LINES = 0.99
"""Share of the lines that come to the end of the range."""


def one_number(made: Sequence[Quantised]) -> Iterator[Quantised]:
    """The matrices with the same scale for each line, of which each line of codes comes to the end of the range.

    One scale for a whole matrix lets one line come there, unless all lines are equally large: those of others are not.
    """
    varied = [q for q in made if float(np.ptp(q.scales)) > VARY * float(q.scales.max())]
    for one in made if len(varied) >= FEWEST_VARYING else ():
        if float(np.ptp(one.scales)) <= ONE * float(one.scales.max()) and _each_line_full(one):
            yield one


def _each_line_full(one: Quantised) -> bool:
    """Whether all lines that the scales are of come to the end; of a square matrix those of one axis alone."""
    axis = one.said if one.said is not None else one.axis
    if axis is None or one.shape[axis] != len(one.scales):
        return False
    codes = np.abs(one.codes())
    return float((codes >= codes.max() - 1).any(axis=1 - axis).mean()) >= LINES


def _size(one: Quantised) -> float:
    """The logarithm of the root mean square of the restored matrix; infinite where scales fit no axis."""
    axis = next((a for a in (0, 1) if one.shape[a] == len(one.scales)), None)
    restored = one.restored(axis) if axis is not None else None
    size = float(np.sqrt(np.mean(restored**2))) if restored is not None else math.inf
    return math.log(size) if size > 0 else -math.inf
