"""Dropout stays on in evaluation mode.

A copy of the model in evaluation mode gives different outputs for the same input, and a dropout drew the numbers. The
functional form without `training=self.training` does that, and so does an attention that is given a dropout rate as a
number. Models that also draw samples (a latent, noise) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.randomness import Random

RULE = Rule(
    id="T335",
    name="dropout-in-evaluation",
    title="Dropout stays on in evaluation mode",
    severity=Severity.HIGH,
    sees="two calls of a copy of the model in evaluation mode with other random numbers, and what drew them",
    matters="evaluation and deployment are noisy and worse than the model is",
    alike=("Monte Carlo dropout on purpose",),
    confirm=("model.eval(); torch.equal(model(x), model(x))",),
    thresholds={"change": Threshold(0.0, "of the output beyond rounding", "a model without randomness repeats")},
)


def check(seen: Random | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None:
        return
    yield RULE.finding(
        f"{where.model} in evaluation mode gives outputs that differ by up to {seen.largest:.3g} standard deviations "
        "for one input: a dropout draws there", where.at(seen.file, seen.line), SOURCE, bearing=Bearing.CAUSE,
        measured={"largest": round(seen.largest, 4), "module": where.model})
