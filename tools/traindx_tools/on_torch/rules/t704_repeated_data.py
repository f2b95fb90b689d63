"""Batches say the same again and again.

`kind`: "constant" where all rows of every measured batch are equal (a broken collate, an index that does not move, a
generator that is seeded in `__getitem__`); "workers" where each batch that a DataLoader gives out comes several times
in a row (an iterable data set that every worker runs through from its start, workers with the same random state);
"same-batch" where one batch is given out always: that is how one overfits a batch on purpose, and is reported as low.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, at
from traindx_tools.rules import Rule, Threshold

BATCHES, SHARE, DISTINCT, CONSTANT = 12, 0.4, 3, 3

RULE = Rule(
    id="T704",
    name="repeated-data",
    title="The same data is given out again and again",
    severity=Severity.HIGH,
    sees="rows within the measured batches, and keys of the batches that DataLoaders give out",
    matters="the model sees a fraction of the data it is thought to see; an epoch is several passes over it",
    alike=("an epoch of few batches: each comes again, never in a row", "position numbers or masks: alike in each row",
           "overfitting one batch on purpose"),
    confirm=("Print the indices, or a hash, of the first 20 batches with num_workers=0 and with your number.",),
    thresholds={
        "share": Threshold(SHARE, "of at least 12 batches equal to the one before", "two workers alike give one half"),
        "constant": Threshold(CONSTANT, "measured batches with equal rows", "one may be an accident"),
    },
)


@dataclass(frozen=True)
class Repeats:
    """`given` batches, of which `distinct` are different and `in_a_row` equal the one before; of `measured` steps
    `constant` had nothing but equal rows."""

    given: int
    distinct: int
    in_a_row: int
    measured: int
    constant: int
    name: str
    step: int
    rank: int = 0


def check(seen: Repeats) -> Iterator[Finding]:
    """At most one finding."""
    kind = None
    if seen.constant >= CONSTANT and seen.constant >= 0.8 * seen.measured:
        kind = "constant"
        text = f"all rows of {seen.name} are equal in {seen.constant} of {seen.measured} measured batches"
    elif seen.given >= BATCHES and seen.distinct == 1:
        kind = "same-batch"
        text = f"the same batch was given out {seen.given} times"
    elif seen.given >= BATCHES and seen.distinct >= DISTINCT and seen.in_a_row >= SHARE * seen.given:
        kind = "workers"
        text = (f"{seen.in_a_row} of {seen.given} batches that the DataLoader gave out equal the one before: each "
                f"comes about {seen.given / max(1, seen.given - seen.in_a_row):.1f} times in a row")
    if kind is not None:
        yield RULE.finding(text, at(seen.step, seen.rank), SOURCE, bearing=Bearing.CAUSE,
                           severity=Severity.LOW if kind == "same-batch" else Severity.HIGH,
                           measured={"kind": kind, "given": seen.given, "distinct": seen.distinct,
                                     "times": round(seen.given / max(1, seen.given - seen.in_a_row), 2)})
