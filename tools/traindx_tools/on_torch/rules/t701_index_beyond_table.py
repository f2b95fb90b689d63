"""An index is beyond the table that it is looked up in.

On the CPU an embedding raises an error that names neither the index nor the place; on a GPU the run dies of a
device-side assert at some later line. The rule reads the tensor that the failing call was given, or, where the device
can no longer be read, the batch as the DataLoader gave it out, and names the table, the index and where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.batches import SOURCE
from traindx_tools.rules import Rule

RULE = Rule(
    id="T701",
    name="index-beyond-table",
    title="An index is beyond the embedding table",
    severity=Severity.CRITICAL,
    sees="the indices of the lookup that failed, against the rows of its table",
    matters="the run stops; on a GPU at a line that has nothing to do with it",
    alike=("a label beyond the classes: see T702",),
    confirm=("print(ids.min(), ids.max(), embedding.num_embeddings)",),
)


@dataclass(frozen=True)
class BeyondTable:
    """One lookup: `low` and `high` are the extremes of the indices, `place` where the first bad one stands."""

    table: str
    rows: int
    name: str
    low: int
    high: int
    value: int
    place: tuple[int, ...]
    bad: int
    step: int
    position: bool = False
    """The indices are a count from 0: positions, not tokens."""
    file: str | None = None
    line: int | None = None
    rank: int = 0


def check(seen: BeyondTable | None) -> Iterator[Finding]:
    """One finding, if there is an index below 0 or beyond the last row."""
    if seen is None or (seen.low >= 0 and seen.high < seen.rows):
        return
    kind = "negative" if seen.high < seen.rows else "position" if seen.position else "token"
    yield RULE.finding(
        f"{seen.name} holds {seen.value} at {list(seen.place)}, and the table {seen.table} has the rows 0 to "
        f"{seen.rows - 1}; {seen.bad} of its indices lie outside (lowest {seen.low}, highest {seen.high})",
        Location(file=seen.file, line=seen.line, module=seen.table, step=float(seen.step), rank=seen.rank), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "table": seen.table, "rows": seen.rows, "index": seen.value, "highest": seen.high,
                  "bad": seen.bad, "position": str(list(seen.place))})
