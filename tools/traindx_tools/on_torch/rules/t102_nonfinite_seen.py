"""The loss of a backward pass, or a gradient before an optimizer step, is NaN or infinite.

The sentinel is always on. It keeps one number a step on the device (the loss, the largest gradient) and reads it a
step later, so that it never waits for the device. It says when the first value that is not finite appeared and where
it was seen, not what made it: that is the origin (T101), which a second pass with tracing finds.

The gradients of small parameters (biases, norms) are looked at in every step and the large ones in turn: a NaN of the
backward pass reaches every parameter before it, so the small ones show it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SKIPPED = 30
"""Steps in a row that a GradScaler skips before it is a fault."""

RULE = Rule(
    id="T102",
    name="nonfinite-seen",
    title="The loss or a gradient stopped being finite in the running process",
    severity=Severity.CRITICAL,
    sees="the loss of every backward pass and the largest gradient before every optimizer step",
    matters="one such step writes NaN into every weight; everything after it is wasted",
    alike=("overflows that a GradScaler notices and skips are no fault and are not reported",),
    confirm=("traindx run -- CMD searches the origin by itself and names the operation (T101)",),
    thresholds={"skipped": Threshold(SKIPPED, "steps in a row that a GradScaler skips",
                                     "from its initial scale of 2^16 it needs 16 halvings to reach 1")},
)


def check(what: str, value: float, step: int, backward: int, before: float | None, rank: int | None = None,
          source: str = "the running process", clean: int = 0) -> Iterator[Finding]:
    """The finding where a watched value ("loss", "gradient") is not finite; `before`: its last finite value.

    `clean`: the last backward pass after which the gradients were seen to be finite.
    """
    if math.isfinite(value):
        return
    kind = "nan" if math.isnan(value) else "inf"
    if what == "scaled gradient":
        yield from _skipped(step, backward, rank, source)
        return
    last = f"; the last finite one was {before:.4g}" if before is not None else "; it was never finite"
    yield RULE.finding(
        f"the {what} is {value} in step {step} (backward pass {backward}){last}",
        Location(step=step, rank=rank), source, bearing=Bearing.SIGN,
        measured={"what": what, "kind": kind, "step": step, "backward": backward, "last_finite": before, "clean": clean,
                  "onset": "from-start" if before is None else "abrupt"})


def _skipped(step: int, backward: int, rank: int | None, source: str) -> Iterator[Finding]:
    yield RULE.finding(
        f"the GradScaler has skipped {SKIPPED} steps one after the other up to step {step} (backward pass {backward}): "
        "the gradients are not finite at any loss scale", Location(step=step, rank=rank), source,
        bearing=Bearing.SIGN,
        measured={"what": "skipped", "kind": "skipped", "step": step, "backward": backward, "skipped": SKIPPED})
