"""A codebook does not move while everything else trains.

Neither a gradient nor a moving average reaches it: the codebook loss is missing or detached on the wrong side, the
table is a buffer without an update, or it is missing from the optimizer. The encoder then adapts to random codes.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

STEPS = 20

RULE = Rule(
    id="T602",
    name="codebook-still",
    title="A codebook never moves",
    severity=Severity.HIGH,
    sees="the table after each optimizer step, through its product with one fixed vector",
    matters="codes stay where they were initialised; reconstruction is limited by chance",
    alike=("a frozen, pretrained tokeniser: not in training mode, and left out here",),
    confirm=("`codebook.weight.grad` after backward: None or zero", "the commitment and codebook terms: which side is "
             "detached in each"),
    thresholds={"steps": Threshold(STEPS, "optimizer steps without any change", "an update of any rule shows in one")},
)


def check(path: str, moved: float, steps: int, source: str, rank: int) -> Iterator[Finding]:
    """`moved`: share of codes that ever changed over `steps` steps."""
    if steps < STEPS or moved > 0:
        return
    yield RULE.finding(f"no code of {path} moved in {steps} steps: neither gradient nor moving average reaches it",
                       Location(module=path, step=0, end_step=steps, rank=rank), source, bearing=Bearing.CAUSE,
                       measured={"steps": steps})
