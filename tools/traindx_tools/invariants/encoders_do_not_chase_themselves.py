"""The target of a self-supervised prediction is cut from the graph.

In SimSiam and BYOL the prediction of one view is compared with the encoding of the other, which is a target: without
`detach()` both sides move towards each other and the encoder collapses to one constant output within some hundred
steps, with a loss at its best value (Chen and He 2021, section 4.1: accuracy at chance). What is contrasted with
negatives needs both gradients and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("recipes", ("C221",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every distance of a prediction to what the same encoder gives."""
    for distance in program.distances_to_itself:
        yield Breach(
            "C221", f"{distance.text} at {distance.at} compares a prediction with {distance.cut}, an output of the "
            "trained encoder, and does not detach it: both sides move, and a constant output is the optimum",
            distance.at, measured={"kind": "attached", "target": distance.cut})
