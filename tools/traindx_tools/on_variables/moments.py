"""Second moments that an optimizer was given, beside the squares of the gradients since: how far they are too large.

Standard library only: what is measured in torch and what is measured in JAX is judged alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FEWEST = 2
"""Parameters below which a common factor is none."""
FACTOR, SAME = 1000.0, 30.0
"""How many times as large as the squares all moments are, and how far one parameter's factor may lie from that."""


@dataclass(frozen=True)
class Strange:
    """`kind`: "scale" (`factor`: the median over the parameters), "part" (`names` have it, median `factor`, and the
    other parameters have not) or "exchanged" (`names`: pairs of parameters)."""

    kind: str
    parameters: int
    steps: int
    factor: float = 1.0
    names: tuple[str, ...] = ()
    own: float = 0.0
    others: float = 0.0


def by_factors(factors: Mapping[str, float], steps: int) -> Strange | None:
    """None where the moments can be those of such gradients.

    `factors`: by parameter, its second moment over the mean square of its gradients in the `steps` since.
    """
    known = [n for n, f in factors.items() if f > 0 and math.isfinite(f)]
    values = sorted(factors[n] for n in known)
    if len(values) >= FEWEST:
        middle = values[len(values) // 2]
        if middle >= FACTOR and values[0] >= middle / SAME and values[-1] <= middle * SAME:
            return Strange("scale", len(known), steps, middle)
    large, others = [n for n in known if factors[n] >= FACTOR], [f for f in values if f < FACTOR]
    if large and len(others) >= FEWEST and others[0] >= 1 / SAME and others[-1] <= SAME:
        own = sorted(factors[n] for n in large)
        return Strange("part", len(known), steps, own[len(own) // 2], names=tuple(large[:8]))
    return None
