"""Every pass over the training data is left behind the same row, and the loader keeps their order.

A limit of batches, a `break`, several loaders of which the shortest ends the epoch: with a shuffling loader other rows
come in the next pass. With one that keeps the order the same rows come again, and those behind them are never trained
on, whatever they hold: the last files, sites, classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.passes import BATCHES, LEFT, PASSES, LeftEarly
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.nonfinite.places import Place

RULE = Rule(
    id="T731",
    name="passes-left-early",
    title="Each pass is left before its end, and the order is fixed: the rows behind are never trained on",
    severity=Severity.HIGH,
    sees="the indices that a loader in stored order gives in each pass, and whether steps are made meanwhile",
    matters="a part of the training data is never seen, and is answered as data of another kind would be",
    alike=("a loader that shuffles: other rows come in the next pass", "a sampler of one's own: a part is meant",
           "a trial on a few batches, and a last batch that is dropped"),
    confirm=("print(len(loader), steps_of_one_epoch)", "the same run with shuffle=True: the part is answered better"),
    thresholds={
        "left": Threshold(LEFT[0], "of the items", "fewer are dropped with the last batch; above 0.95 it is a trial"),
        "passes": Threshold(PASSES, "passes that ended behind the same row", "one may be cut by the end of the run"),
        "batches": Threshold(BATCHES, "batches of a pass", "fewer are a trial"),
    },
)


def check(found: LeftEarly, loader: str, place: Place | None, step: int, rank: int = 0) -> Iterator[Finding]:
    """The finding. `place`: the line that asks the loader."""
    file, line = (place.file, place.line) if place is not None else (None, None)
    yield RULE.finding(
        f"{loader} has {found.items:,} items and gives the first {found.given:,} of them, {found.batches:,} batches, "
        f"in each of {found.passes} passes; it keeps their order, so that items {found.given:,} to {found.items - 1:,} "
        f"({found.share:.0%}) are never trained on", Location(file=file, line=line, step=float(step), rank=rank),
        "torch probe: passes", bearing=Bearing.CAUSE,
        measured={"loader": loader, "items": found.items, "given": found.given, "batches": found.batches,
                  "passes": found.passes, "share": round(found.share, 4), "left": found.items - found.given})
