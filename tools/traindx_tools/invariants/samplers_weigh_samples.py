"""A weighted sampler gets one weight a sample.

`WeightedRandomSampler(weights, num_samples)` draws positions of its weights: with `len(weights)` entries it draws
indices from 0 to `len(weights) - 1`. Given the weights of C classes, it draws the first C samples over and over,
however large `num_samples` is. The training loss falls to zero at once, and nothing is learned of the rest. Every
sample needs the weight of its class: `weights[labels]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("data", ("C294",))


def check(program: Program) -> Iterator[Breach]:
    """Look at the axis of the weights of every sampler that a loader is given."""
    for use in program.axis_uses:
        if use.operation == "sampler" and use.role == "classes":
            yield Breach("C294", f"{use.text} at {use.at} is given one weight per class instead of one weight per "
                         "sample: it draws only the first few indices, 0 to the number of classes less one, over and "
                         "over", use.at, measured={"kind": "by class"})
