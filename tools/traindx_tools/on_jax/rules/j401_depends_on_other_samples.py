"""The output for one sample depends on the inputs of the others.

One sample of the batch is changed and the function is evaluated twice, equation by equation: the outputs of the other
samples must not move. The first equation at which they do is named: a mean, norm or softmax over the axis of the
batch, an attention over samples, a vmap over the wrong axis. Batch normalisation in training mode does this by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Finding, Location, Severity, Strength
from traindx_tools.on_jax.places import Place
from traindx_tools.rules import Rule

RULE = Rule(
    id="J401",
    name="jax-depends-on-other-samples",
    title="One sample's output depends on other samples",
    severity=Severity.MEDIUM,
    sees="two evaluations that differ in one sample of the batch",
    matters="the loss leaks information between samples, and evaluation with another batch size gives other results",
    alike=("BatchNorm in training mode, contrastive losses and in-batch negatives, which mix samples by design",),
    confirm=("evaluate the samples one by one and compare",),
)


@dataclass(frozen=True)
class Mixed:
    """Where samples meet. `changed`: how many of the other samples' outputs moved."""

    function: str
    op: str
    place: Place | None
    changed: int
    samples: int
    axis: int


def check(it: Mixed) -> Iterator[Finding]:
    """The finding for it."""
    place = it.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=it.function)
    at = f" at {place}" if place else ""
    yield RULE.finding(
        f"{it.function}: a change of one sample (axis {it.axis}) moves the outputs of {it.changed} of {it.samples - 1} "
        f"other samples; they meet first in {it.op}{at}", where, "two evaluations", strength=Strength.DIRECT,
        measured={"op": it.op, "changed": it.changed, "samples": it.samples, "axis": it.axis, "function": it.function,
                  "code": place.quote if place else ""})
