"""One class has most of the rows. A remark: many real tasks are so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import percent, place
from traindx_tools.on_data.roles import keys, label_name
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST = 0.9

RULE = Rule(
    id="D111",
    name="imbalance",
    title="One class has most of the rows",
    severity=Severity.INFO,
    sees="counts of each label, over all shards of a split",
    matters="A model that always names this class is right as often, and a loss that counts rows rewards it.",
    alike=("Rare events: the task itself.",),
    confirm=("Compare the accuracy with the share of the most frequent class.",),
    thresholds={"most": Threshold(MOST, "share of rows", "accuracy says little above it")},
)


def check(view: View) -> Iterator[Finding]:
    """A remark for each label and split."""
    for data in view.sets:
        for name in data.labels:
            for group in data.siblings(name):
                if not group:
                    continue
                kinds, counts = np.unique(np.concatenate([keys(s.columns[name]) for s in group]), return_counts=True)
                share = float(counts.max() / counts.sum())
                if share >= MOST:
                    yield RULE.finding(
                        f"{percent(share)} of {counts.sum():,} rows have {name} "
                        f"{label_name(data.shards, name, kinds[int(counts.argmax())])}",
                        place(group[0], name),
                        group[0].name,
                        bearing=Bearing.COMPANION,
                        measured={"field": name, "share": share, "classes": len(kinds)},
                    )
