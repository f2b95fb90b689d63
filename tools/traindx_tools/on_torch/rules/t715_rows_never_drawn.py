"""Rows of a dataset that no DataLoader ever draws, though epochs have ended.

Where the rows that are left out are fewer than a batch, the last batch is dropped. A sampler or a part of the data on
purpose leaves rows out as well: this is a remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.rows import SOURCE
from traindx_tools.rows.coverage import Coverage
from traindx_tools.rules import Rule, Threshold

EPOCHS, SHARE, ROWS = 3, 0.1, 50

RULE = Rule(
    id="T715",
    name="rows-never-drawn",
    title="Rows of a dataset are never drawn",
    severity=Severity.LOW,
    sees="the indices that samplers give to DataLoaders, by dataset, over the epochs that have ended",
    matters="the model is trained on less than it is thought to be",
    alike=("a sampler for a part of the data", "sampling with weights: rare rows wait for long",
           "ranks that draw a part each"),
    confirm=("print(len(set(i for batch in loader.batch_sampler for i in batch)), len(loader.dataset))",),
    thresholds={
        "share": Threshold(SHARE, "of the dataset", "fewer are dropped with the last batch"),
        "epochs": Threshold(EPOCHS, "epochs have ended", "sampling with replacement misses 5 % after three"),
    },
)


def check(seen: Sequence[Coverage], step: int, rank: int = 0) -> Iterator[Finding]:
    """A finding for each dataset of which many rows were never drawn."""
    for coverage in seen:
        rows = len(coverage.counts)
        if coverage.complete < EPOCHS or rows < ROWS:
            continue
        never = np.flatnonzero(coverage.counts == 0)
        if len(never) < SHARE * rows:
            continue
        runs = int((np.diff(never) != 1).sum()) + 1
        which = f"rows {never[0]} to {never[-1]}" if runs == 1 else f"in {runs} ranges, the first at row {never[0]}"
        yield RULE.finding(
            f"{len(never)} of {rows} rows of {coverage.name} ({len(never) / rows:.0%}, {which}) are drawn by no "
            f"DataLoader in {coverage.complete} epochs", Location(step=float(step), rank=rank), SOURCE,
            bearing=Bearing.COMPANION,
            measured={"kind": "range" if runs == 1 else "scattered", "rows": len(never), "of": rows,
                      "share": round(len(never) / rows, 4), "first": int(never[0]), "last": int(never[-1])})
