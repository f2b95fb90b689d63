"""A label is beyond the classes of the output.

Cross entropy takes labels from 0 to classes - 1 and the ignored index. Labels that begin at 1, a class that the head
does not have, or a padding value of -1 end in "Target out of bounds" on the CPU and in a device-side assert on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.batches import SOURCE
from traindx_tools.rules import Rule

RULE = Rule(
    id="T702",
    name="label-beyond-classes",
    title="A label is beyond the classes",
    severity=Severity.CRITICAL,
    sees="the labels of the cross entropy that failed, against the classes of its input",
    matters="the run stops; on a GPU at a line that has nothing to do with it",
    alike=("an index beyond an embedding: see T701", "labels and logits with their axes exchanged"),
    confirm=("print(labels.min(), labels.max(), logits.shape)",),
)


@dataclass(frozen=True)
class BeyondClasses:
    """The labels of one call."""

    name: str
    classes: int
    low: int
    high: int
    value: int
    place: tuple[int, ...]
    bad: int
    step: int
    ignored: int = -100
    file: str | None = None
    line: int | None = None
    rank: int = 0


def check(seen: BeyondClasses | None) -> Iterator[Finding]:
    """One finding, if a label is neither a class nor the ignored index."""
    if seen is None or seen.bad == 0:
        return
    kind = "one-based" if seen.low == 1 and seen.high == seen.classes else "negative" if (
        seen.high < seen.classes) else "beyond"
    hint = "; they count from 1" if kind == "one-based" else ""
    yield RULE.finding(
        f"{seen.name} holds {seen.value} at {list(seen.place)} and the output has the classes 0 to {seen.classes - 1}; "
        f"{seen.bad} labels lie outside (lowest {seen.low}, highest {seen.high}){hint}",
        Location(file=seen.file, line=seen.line, step=float(seen.step), rank=seen.rank), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "classes": seen.classes, "label": seen.value, "lowest": seen.low,
                  "highest": seen.high, "bad": seen.bad})
