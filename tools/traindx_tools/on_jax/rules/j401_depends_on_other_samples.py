"""The output for one sample depends on the inputs of the others.

Two samples of the batch are changed, one at a time, and the function is evaluated equation by equation: the outputs of
the other samples must not move. The first equation that makes an element depend on both is named: a mean, norm or
softmax over the axis of the batch, an attention over samples, a vmap over the wrong axis. Batch normalisation in
training mode does this by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.on_jax.places import Place
from traindx_tools.rules import Rule

RULE = Rule(
    id="J401",
    name="jax-depends-on-other-samples",
    title="One sample's output depends on other samples",
    severity=Severity.MEDIUM,
    sees="three evaluations that differ in one sample of the batch: of a function that is given "
         "(`paths.mixing.sample_dependence`), and of what a running program compiled for its evaluation",
    matters="the loss leaks information between samples, and evaluation with another batch size gives other results",
    alike=("BatchNorm in training mode, contrastive losses and in-batch negatives, which mix samples by design",
           "nodes of one graph, steps of one sequence: rows that always stand behind the same row are asked nothing"),
    confirm=("evaluate the samples one by one and compare",),
)


@dataclass(frozen=True)
class Mixed:
    """Where samples meet. `changed`: how many of the other samples' outputs moved; `axis`: where they should lie."""

    function: str
    op: str
    place: Place | None
    changed: int
    samples: int
    axis: int
    output: str = ""
    """The path of the output."""
    shape: tuple[int, ...] = ()
    lies_on: int | None = None
    """The axis of the output on which samples lie instead; None where they are mixed."""
    below_zero: float = 0.0
    """Of the indices of a look-up, the share that is below zero."""


WRAPPED = ("negative indices are not masked: in JAX -1 takes the last row of the table, here that of the last sample "
           "of the batch")


def check(it: Mixed) -> Iterator[Finding]:
    """The finding for it."""
    place = it.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=it.function)
    at = f" at {place}" if place else ""
    name = f"output {it.output}" if it.output else "the output"
    if it.lies_on is not None:
        what = (f"{name} of shape {it.shape} has its {it.samples} samples on axis {it.lies_on}, not on axis {it.axis}: "
                f"out_axes={it.lies_on}, or the output is transposed")
    else:
        meet = f"; they meet first in {it.op}{at}" if it.op else ""
        what = (f"a change of one sample moves {name} of shape {it.shape} for {it.changed} of {it.samples - 1} other "
                f"samples (axis {it.axis}){meet}")
    measured: dict[str, Value] = {
        "op": it.op, "changed": it.changed, "samples": it.samples, "axis": it.axis, "function": it.function,
        "kind": "axis" if it.lies_on is not None else "mixed", "code": place.quote if place else ""}
    if it.below_zero:
        what += f"; {it.below_zero:.0%} of the indices are below zero, and these take rows from the end"
        measured["how"] = WRAPPED
    yield RULE.finding(f"{it.function}: {what}", where, "evaluations that differ in one sample", bearing=Bearing.CAUSE,
                       measured=measured)
