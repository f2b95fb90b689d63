"""Second moments that an optimizer was given, beside the squares of the gradients that it then meets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from traindx_tools.on_variables.moments import Strange, by_factors

if TYPE_CHECKING:
    import torch

NAMES = ("exp_avg_sq", "square_avg")
"""How optimizers of torch call them: Adam and its kin, RMSprop."""
MOST_VALUES, FEWEST_VALUES = 4096, 48
"""Values of one parameter that are looked at, and that tell its pattern."""
OWN, ANOTHERS = 0.3, 0.6
"""Correlation of logarithms: at most with the own gradients, at least with another parameter's, both ways."""


def strange(moments: Mapping[str, torch.Tensor], squares: Mapping[str, torch.Tensor],
            shapes: Mapping[str, tuple[int, ...]], steps: int) -> Strange | None:
    """None where the moments can be those of such gradients.

    `moments`: without the bias of a short memory, flat, in float64; `squares`: the mean square of the gradients since.
    """
    known = [n for n in moments if n in squares and float(squares[n].sum()) > 0 and float(moments[n].sum()) > 0]
    by_name = {n: float(moments[n].mean() / squares[n].mean()) for n in known}
    return by_factors(by_name, steps) or _exchanged(known, moments, squares, shapes, steps)


def _exchanged(known: Sequence[str], moments: Mapping[str, torch.Tensor], squares: Mapping[str, torch.Tensor],
               shapes: Mapping[str, tuple[int, ...]], steps: int) -> Strange | None:
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in known:
        if moments[name].numel() >= FEWEST_VALUES:
            groups.setdefault(shapes[name], []).append(name)
    found: list[tuple[str, float, float]] = []
    for group in (g[:32] for g in groups.values() if len(g) > 1):
        fits = {(a, b): _alike(moments[a], squares[b]) for a in group for b in group}
        for a, b in combinations(group, 2):
            own, others = max(fits[a, a], fits[b, b]), min(fits[a, b], fits[b, a])
            if own <= OWN and others >= ANOTHERS:
                found.append((f"{a} and {b}", own, others))
    if not found:
        return None
    return Strange("exchanged", len(known), steps, names=tuple(n for n, _, _ in found[:8]), own=found[0][1],
                   others=found[0][2])


def _alike(moments: torch.Tensor, squares: torch.Tensor) -> float:
    """The correlation of the logarithms of two patterns, 0 where one has none."""
    both = (moments > 0) & (squares > 0)
    if int(both.sum()) < FEWEST_VALUES:
        return 0.0
    one, other = (t[both].log() - t[both].log().mean() for t in (moments, squares))
    size = float(one.norm() * other.norm())
    return float(one @ other) / size if size > 0 and math.isfinite(size) else 0.0
