"""The weights of the classes are those of other classes, or upside down.

Weights that balance a loss are made of counts. A table of counts is often sorted by frequency or holds the classes in
the order of their names, and the loss takes the weights by class id. `kind`: "permuted": sorted by size they are what
the counts of the trained labels ask for, as they stand they are not; "inverted": they grow with the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Finding, Location, Severity
from traindx_tools.rows import class_weights
from traindx_tools.rows.class_weights import Misfit
from traindx_tools.rules import Rule

SOURCE = "torch probe: class weights"
RULE = Rule(
    id="T729",
    name="class-weights",
    title="The weights of the classes are not those of their classes",
    severity=Severity.HIGH,
    sees="the weights that a loss is given, and how often each class is trained on with them",
    matters="rare classes count less instead of more, and some other class takes their place",
    alike=("weights of costs, which fit the counts in no order", "batches that a sampler has balanced already"),
    confirm=("print(sorted(zip(torch.bincount(labels).tolist(), weight.tolist())))",),
    thresholds=class_weights.THRESHOLDS,
)


@dataclass(frozen=True)
class Weighted:
    """One loss: where it is called, what its argument is called, the rows that were counted and what was found."""

    loss: str
    argument: str
    rows: int
    found: Misfit
    file: str | None = None
    line: int | None = None


def check(seen: Weighted, step: int, rank: int = 0) -> Iterator[Finding]:
    """The finding."""
    it = seen.found
    if it.kind == "permuted":
        what = (f"sorted by size they are what the counts of the {seen.rows} trained labels ask for, as they stand "
                f"they are not: class {it.worst} counts {it.times:.3g} times its due")
    else:
        what = (f"they grow with the counts of the {seen.rows} trained labels: the most frequent class, {it.worst}, "
                f"has {it.times:.3g} times the weight of the rarest")
    yield RULE.finding(
        f"the {it.classes} class weights of {seen.loss} ({seen.argument}) are not those of their classes: {what}",
        Location(file=seen.file, line=seen.line, step=float(step), rank=rank), SOURCE,
        bearing=class_weights.bearing_of(it),
        measured={"kind": it.kind, "class": it.worst, "times": it.times, "classes": it.classes, "rows": seen.rows})
