"""The weights of the classes are those of other classes, or upside down: what T729 says, of a compiled function.

A table of counts that is sorted by frequency, or by name, gives weights in its own order, and `weights[labels]` takes
them by class id. Seen where a compiled function looks a row of numbers up by an argument: sorted by size they are what
the counts of those ids ask for, as they stand they are not ("permuted"), or they grow with the counts ("inverted").
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Location, Severity
from traindx_tools.rows import class_weights
from traindx_tools.rows.class_weights import Misfit
from traindx_tools.rules import Rule

RULE = Rule(
    id="J808",
    name="jax-class-weights",
    title="The weights of the classes are not those of their classes",
    severity=Severity.HIGH,
    sees="rows of numbers that compiled functions look up by an argument, and how often each id comes",
    matters="rare classes count less instead of more, and some other class takes their place",
    alike=("weights of costs, which fit the counts in no order", "a table that is trained: others in the next call",
           "a schedule that is looked up by a step drawn evenly: its counts are alike"),
    confirm=("print(sorted(zip(jnp.bincount(labels).tolist(), weights.tolist())))",),
    thresholds=class_weights.THRESHOLDS,
)


def check(function: str, found: Misfit, rows: int, file: str | None, line: int | None) -> Iterator[Finding]:
    """The finding."""
    if found.kind == "permuted":
        what = (f"sorted by size they are what the counts of the {rows:,} ids ask for, as they stand they are not: "
                f"class {found.worst} counts {found.times:.3g} times its due")
    else:
        what = (f"they grow with the counts of the {rows:,} ids: the most frequent class, {found.worst}, counts "
                f"{found.times:.3g} times as much as the rarest")
    yield RULE.finding(
        f"weights that {function} looks up by class are not those of their classes: {what}",
        Location(file=file, line=line, module=function),
        "the running process", bearing=class_weights.bearing_of(found),
        measured={"kind": found.kind, "class": found.worst, "times": found.times, "classes": found.classes,
                  "rows": rows})
