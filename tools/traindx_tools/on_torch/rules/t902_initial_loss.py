"""The first loss is far from what an untrained classifier must have.

Before the first update a classifier knows nothing: its cross entropy is ln(classes), within some per cent. A first loss
far above it means outputs that are confidently wrong (a scale of the last layer or of the inputs, logits summed instead
of averaged, a wrong temperature), one far below it that it is no fresh model or that the answer is in the input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

HIGH, LOW, LEAST = 2.0, 0.2, 1.5

RULE = Rule(
    id="T902",
    name="initial-loss",
    title="The first loss does not fit an untrained classifier",
    severity=Severity.MEDIUM,
    sees="the loss of the first step and the number of classes of the output it was computed from",
    matters="training starts by undoing it, or the loss is not what it is taken for",
    alike=("a pretrained or resumed model: below ln(classes) is right then",
           "a loss summed over samples: a multiple of ln(classes) that follows the batch size"),
    confirm=("mean and standard deviation of the logits at the first step: about 0 and below 1",),
    thresholds={
        "high": Threshold(HIGH, "x ln(classes)", "arithmetic: outputs of unit scale add about 0.5 to ln(classes)"),
        "margin": Threshold(LEAST, "above ln(classes)", "keeps the noise of few samples apart"),
    },
)


def check(loss: float, classes: int, step: int, source: str, rank: int) -> Iterator[Finding]:
    """A finding where the first loss is at least twice ln(classes), and 1.5 above it."""
    if classes < 2 or not math.isfinite(loss):
        return
    chance = math.log(classes)
    if loss < HIGH * chance or loss < chance + LEAST:
        return
    yield RULE.finding(
        f"the first loss is {loss:.3g}, {loss / chance:.1f} times ln({classes}) = {chance:.3g}, which an untrained "
        f"classifier of {classes} classes has", Location(step=step, rank=rank), source,
        bearing=Bearing.SIGN, measured={"loss": round(loss, 4), "classes": classes,
                                                    "ratio": round(loss / chance, 2)})
