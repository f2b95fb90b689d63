"""How far running statistics moved between two checkpoints, beside how far the weights that make them did.

Normalisation takes the scale of its input out: the variance that a layer sees follows the weights before it. Over a
stretch of training in which the weights up to a layer moved by a share c of their norm, the logarithm of its variance
and its mean, in standard deviations, moved by about c as well (measured: 0.5 to 1.0 times). What moved many times as
far was estimated on other data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.movement import movement
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats

CONVERGED = 50
"""Batches after which a running mean of momentum 0.1 has forgotten where it began."""


@dataclass(frozen=True)
class Moved:
    """A normalisation between two files."""

    module: str
    variance: float
    """Median of the logarithm of the ratio of the variances."""
    mean: float
    """Root mean square change of the mean, in standard deviations of the first file."""
    weights: float
    """Relative change of the weights up to the layer, together."""

    @property
    def far(self) -> float:
        """The larger of the two."""
        return max(abs(self.variance), self.mean)


def values_of(stats: Stats) -> NDArray[np.float64] | None:
    """All channels; None where they are not finite, which W101 tells, or absurdly many."""
    if stats.nan or stats.inf or stats.tensor.nbytes > 2**24:
        return None
    return stats.tensor.load().astype(np.float64).reshape(-1)


def batches(seen: Seen, module: str) -> int | None:
    """How many batches the layer says it has seen."""
    tensor = seen.part.tensors.get(f"{module}.num_batches_tracked")
    return int(tensor.load().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None


def moved(seen: Seen) -> list[Moved]:
    """Each layer whose statistics had settled in the first file, in the order of the file."""
    if seen.other is None:
        return []
    partner = dict(match(seen.part.tensors, seen.other.part.tensors).all_pairs)
    found = []
    weights = [(s.name, seen.changes.get(s.name, math.nan)) for s in seen.weights]
    apart = not weights  # flax keeps statistics in a part of their own: all weights may lie before them
    if apart:
        changes = movement(seen.checkpoint.weights.tensors, seen.other.checkpoint.weights.tensors)
        weights = [(n, c) for n, c in changes.items() if seen.checkpoint.weights.tensors[n].matrix]
    sorted_by_name = apart or list(seen.part.tensors) == sorted(seen.part.tensors)
    order = {n: at for at, n in enumerate(seen.part.tensors)}
    for module, mean, var in seen.normalisations():
        settled = batches(seen, module)
        later = [seen.other.stats.get(partner.get(s.name, "")) for s in (mean, var)]
        if later[0] is None or later[1] is None or (settled is not None and settled < CONVERGED):
            continue
        known = [v for s in (mean, var, later[0], later[1]) if (v := values_of(s)) is not None]
        before = [c for n, c in weights if sorted_by_name or order[n] < order[var.name]]
        if len(known) == 4 and before and np.isfinite(before).all() and (known[1] > 0).all() and (known[3] > 0).all():
            found.append(_change(module, known, before))
    return found


def _change(module: str, known: list[NDArray[np.float64]], before: list[float]) -> Moved:
    mean, var, mean2, var2 = known
    return Moved(module, float(np.median(np.log(var2 / var))),
                 float(np.sqrt(np.mean((mean2 - mean) ** 2 / (var + 1e-12)))), float(np.linalg.norm(before)))
