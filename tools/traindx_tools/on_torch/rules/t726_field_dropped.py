"""A field of the rows never gets into a batch, and what runs on the batch asks for it.

A collate function that keeps what the `forward` of a model names, a trainer that removes other columns, a list of keys
that was written for an earlier version: the field is there in each row, and gone behind the collate function. Who asks
for it takes its absence without a word: `batch.get("weight")`, `inputs.pop("weight", None)`, `if "weight" in batch`,
a parameter of `forward` with a default. `kind`: "asked" for the first, "parameter" for the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: fields"
BATCHES = 3

RULE = Rule(
    id="T726",
    name="field-dropped",
    title="A field of the rows is dropped on the way, and something asks for it",
    severity=Severity.HIGH,
    sees="fields of the rows that a collate function is given against the batch that it returns, by name and by value, "
         "and what running functions ask the batch for",
    matters="weights, masks or ids that were meant to count do not, and a default stands in their place",
    alike=("a field for samplers, logs or filters: nobody asks the batch for it",
           "a field under another name: its values are in the batch",
           "a field that is the same in all rows"),
    confirm=("print(dataset[0].keys(), next(iter(loader)).keys())",
             "a Trainer: remove_unused_columns=False"),
    thresholds={"batches": Threshold(BATCHES, "batches without it", "one may be an odd one")},
)


@dataclass(frozen=True)
class Dropped:
    """One field. `how`: "get", "pop" or "in"; "" for a parameter of `function`."""

    field: str
    batches: int
    sample: str
    function: str
    how: str = ""
    file: str | None = None
    line: int | None = None
    step: int = 0


def check(seen: Sequence[Dropped], rank: int = 0) -> Iterator[Finding]:
    """One finding a field."""
    for s in seen:
        if s.batches < BATCHES:
            continue
        asks = (f"{s.function} asks the batch for it (`{s.how}`) and goes on without" if s.how else
                f"{s.function} takes it by that name and gets its default")
        yield RULE.finding(
            f"each row has the field `{s.field}` (such as {s.sample}) and none of {s.batches} batches that were looked "
            f"at holds it, while {asks}: it is dropped between the dataset and the loop",
            Location(file=s.file, line=s.line, step=float(s.step), rank=rank), SOURCE,
            bearing=Bearing.CAUSE if s.how else Bearing.SIGN, severity=None if s.how else Severity.MEDIUM,
            measured={"kind": "asked" if s.how else "parameter", "field": s.field, "batches": s.batches,
                      "function": s.function, "how": s.how})
