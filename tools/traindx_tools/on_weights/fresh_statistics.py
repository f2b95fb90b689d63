"""Layers whose running statistics are where they begin, and what says that they should not be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.on_weights.norm_movement import batches
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.trained import affine_moved, beyond_noise, steps_of

Layer = tuple[str, Stats, Stats]
"""(module, mean, variance)."""


@dataclass(frozen=True)
class Untouched:
    """Layers at their initial statistics for one reason."""

    layers: tuple[Layer, ...]
    why: str
    sure: bool
    """Whether the layers themselves or their siblings say it, not only a count or a name."""


def fresh(mean: Stats, var: Stats) -> bool:
    """Mean 0 and variance 1 in every channel; a debiased average (haiku) begins at 0 for both."""
    begins = 0.0 if mean.name.endswith("mean_ema.average") else 1.0
    return bool(mean.constant and mean.low == 0 and var.constant and var.low == begins)


def untouched(seen: Seen, layers: Sequence[Layer], of: Sequence[str]) -> list[Untouched]:
    """What is told of the layers `of`, which are at their initial statistics; nothing for a model before training."""
    own = [layer for layer in layers if layer[0] in set(of)]
    if not own:
        return []
    moved = len(layers) - len(own)
    if len(own) <= len(layers) / 2:
        return [Untouched(tuple(own), f"{moved} of the {len(layers)} layers have moved", True)]
    counted = [(layer, n) for layer in own if (n := batches(seen, layer[0]))]
    if counted:
        return [Untouched(tuple(layer for layer, _ in counted), f"it has counted {counted[0][1]:,} batches", True)]
    shifted = [(layer, name) for layer in own if (name := affine_moved(seen.checkpoint, layer[0]))]
    if shifted:
        return [Untouched(tuple(layer for layer, _ in shifted), f"{shifted[0][1]} was trained", True)]
    if moved:
        return []
    if told := steps_of(seen.checkpoint):
        return [Untouched(tuple(own), told, False)]
    name = beyond_noise(seen.checkpoint)
    return [Untouched(tuple(own), f"weights are no draw of an initialiser any more ({name})", False)] if name else []
