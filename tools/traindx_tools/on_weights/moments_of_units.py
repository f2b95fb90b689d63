"""Whether the squared gradients of the units of a network are those that its own weights pass back.

The gradient of a hidden unit is what the next layer's gradients send back through the weights out of the unit: the mean
of its square rises with the sum of their squares. Moments of another network, or of other units, know nothing of that.
Layers follow each other where a stack numbers them, or where the sizes of a layer's ends differ and the next takes its
outputs; so layers side by side, and those around a residual connection, are no pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.dense_chain import Layer, layers_of
from traindx_tools.on_weights.moments import Moments
from traindx_tools.on_weights.seen import Seen

Array = NDArray[np.float64]
UNITS, SMALLEST = 96, 16
"""Hidden units of all pairs of layers, and of one pair."""
LOST, SURE = 0.15, 2.5
"""Correlation of moments that are not of these weights at most, and how many of its errors it is below `HELD`."""
HELD = 0.4
"""Correlation that moments of a network's own have at least: 0.45 to 0.9 with any activation, loss and step."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class PassedBack:
    """`own`: correlation of ranks of units' squared gradients with what the weights pass back. `units`: how many, of
    how many `pairs` of layers."""

    own: float
    units: int
    pairs: int

    @property
    def foreign(self) -> bool:
        """Whether the moments are not of these weights."""
        return self.units >= UNITS and self.own < min(LOST, HELD - SURE / math.sqrt(self.units))


def passed_back(seen: Seen, by_name: Mapping[str, Moments]) -> PassedBack | None:
    """Over all dense layers that are followed by one of their size; None where there is none with its moments."""
    told = [t for one, other in pairwise(layers_of(seen)) if (t := _pair(one, other, by_name)) is not None]
    units = sum(n for _, n in told)
    return PassedBack(sum(own * n for own, n in told) / units, units, len(told)) if units else None


def _pair(one: Layer, other: Layer, by_name: Mapping[str, Moments]) -> tuple[float, int] | None:
    """The correlation and the units between two layers."""
    numbered = _NUMBER.sub("*", one.weight.name) == _NUMBER.sub("*", other.weight.name)
    follows = one.dense and other.dense and other.inputs == one.outputs and (numbered or one.outputs != one.inputs)
    bias, after = (_second(by_name, layer) for layer in (one, other))
    if not follows or one.normed or bias is None or after is None:
        return None
    back = (other.matrix[:, :, 0] ** 2).T @ after
    alive = (bias > 0) & (back > 0)
    return (_ranks(back[alive], bias[alive]), int(alive.sum())) if alive.sum() >= SMALLEST else None


def _second(by_name: Mapping[str, Moments], layer: Layer) -> Array | None:
    """The mean of squares of the bias's gradients."""
    found = by_name.get(layer.bias.name)
    if found is None or found.second is None or found.second.size != layer.outputs:
        return None
    values = found.second.tensor.load().astype(np.float64).reshape(-1)
    return values if np.isfinite(values).all() else None


def _ranks(one: Array, other: Array) -> float:
    """Spearman's correlation."""
    a, b = (np.argsort(np.argsort(v)).astype(np.float64) for v in (one, other))
    return float(np.corrcoef(a, b)[0, 1])
