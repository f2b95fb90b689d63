"""The collate function puts one field of the samples in another order than the others: labels of other inputs.

Sequences are sorted by length for packing, and the labels stay as they came; or two lists are sorted, each by itself.
Every sample of a batch that was read is compared with the batch that was made of it, field by field.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.measures.collated_order import MOVED, Apart
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: order of fields"
FEWEST = 3

RULE = Rule(
    id="T733",
    name="collated-apart",
    title="The fields of a batch stand in different orders",
    severity=Severity.CRITICAL,
    sees="the samples that a DataLoader of this process read, and the batch that its collate function made of them",
    matters="each input is trained on the label of another sample",
    alike=("a batch that holds its order as well: outputs are put back by it", "a mixed batch that holds both targets",
           "labels of which most are equal: chance exchanges few"),
    confirm=("rows = [dataset[i] for i in range(8)]; print(collate_fn(rows), [r[-1] for r in rows])",),
    thresholds={"batches": Threshold(FEWEST, "batches, and none in one order", "a batch may stand in both by chance"),
                "moved": Threshold(MOVED, "of the rows that chance may exchange", "a rounding is none")},
)


def check(seen: Apart | None, batches: int, file: str | None, line: int | None, rank: int = 0) -> Iterator[Finding]:
    """`batches`: in how many it was so, and in none otherwise; `file` and `line`: of the collate function."""
    if seen is None or batches < FEWEST:
        return
    yield RULE.finding(
        f"fields {seen.key} and {seen.other} of a batch stand in different orders in {batches} of {batches} batches: "
        f"row {seen.row} has field {seen.key} of sample {seen.sample} and {seen.has} as field {seen.other}, which is "
        f"{seen.should} of that sample; {seen.moved} of {seen.rows} rows have another sample's",
        Location(file=file, line=line, rank=rank), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": "collated", "key": seen.key, "field": seen.other, "rows": seen.rows, "moved": seen.moved,
                  "batches": batches})
