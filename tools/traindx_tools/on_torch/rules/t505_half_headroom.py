"""Activations in float16 are near their limit of 65504.

The largest value that a layer takes is within a factor of four of what float16 can hold: a slightly larger batch or a
few more steps make it inf, and NaN after that. A loss scale does not help: it is the forward pass that overflows.
bfloat16 reaches as far as float32 and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses
from traindx_tools.rules import Rule, Threshold

LIMIT, NEAR = 65504.0, 0.25

RULE = Rule(
    id="T505",
    name="half-headroom",
    title="float16 activations are near overflow",
    severity=Severity.HIGH,
    sees="the largest magnitude of what layers take and models return in float16, over the sampled steps",
    matters="the forward pass overflows to inf soon, and everything after it is NaN",
    alike=("gradients that overflow: the loss scale halves and training goes on",),
    confirm=("Run the same step in bfloat16 or float32 and print the largest value of the layer's output.",),
    thresholds={"near": Threshold(NEAR, "of 65504", "two bits before the end of the range")},
)


def check(seen: Courses) -> Iterator[Finding]:
    """At most one finding, for the largest."""
    near = [c for c in seen.layers if c.dtype == "float16" and np.nanmax(c.largest) >= NEAR * LIMIT]
    if not near:
        return
    worst = max(near, key=lambda c: float(np.nanmax(c.largest)))
    high, first = float(np.nanmax(worst.largest)), float(worst.largest[0])
    over = not np.isfinite(high) or high > LIMIT
    yield RULE.finding(
        f"the largest float16 value that {worst.path} {'takes' if worst.kind == 'layer' else 'returns'} is {high:.3g}, "
        f"{'beyond' if over else f'{high / LIMIT:.0%} of'} 65504 ({first:.3g} in the first sampled step)"
        + (f", after {worst.after}" if worst.after and worst.kind == "layer" else ""),
        worst.at(), SOURCE, bearing=Bearing.CAUSE,
        measured={"largest": high, "share": high / LIMIT, "first": first, "module": worst.path,
                  "layers": len(near)})
