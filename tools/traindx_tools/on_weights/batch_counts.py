"""Layers of normalisation that have counted far fewer batches than the layers before and behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.on_weights.fresh_statistics import Layer
from traindx_tools.on_weights.norm_movement import batches, values_of
from traindx_tools.on_weights.seen import Seen

FEWEST, USUAL = 4, 0.7
"""Layers that count, and the share of them that have counted alike."""
FEWER = 0.2
"""Of the usual count."""
_MOMENTUM, _SLACK = 0.1, 0.98
"""Torch's, by which a variance falls from the one that it begins with at most each batch."""


@dataclass(frozen=True)
class FewBatches:
    """A layer, what it has counted, what the others have, and whether its variances are as near to 1 as that leaves."""

    layer: Layer
    count: int
    usual: int
    others: int
    as_counted: bool


def few_batches(seen: Seen, layers: Sequence[Layer]) -> list[FewBatches]:
    """Layers amid others that all count alike. The last ones may be a new head, and the first ones were frozen."""
    counted = [(layer, n) for layer in layers if (n := batches(seen, layer[0])) is not None]
    usual, times = Counter(n for _, n in counted).most_common(1)[0] if counted else (0, 0)
    if len(counted) < FEWEST or times < USUAL * len(counted):
        return []
    alike = [i for i, (_, n) in enumerate(counted) if n == usual]
    out = []
    for i, (layer, n) in enumerate(counted):
        if not 0 < n <= FEWER * usual or not alike[0] < i < alike[-1]:
            continue
        variances = values_of(layer[2])
        least = (1 - _MOMENTUM) ** n * _SLACK
        out.append(FewBatches(layer, int(n), int(usual), times,
                              variances is not None and bool((variances >= least).all())))
    return out
