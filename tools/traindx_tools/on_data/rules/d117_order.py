"""The rows are sorted by their label, or the label repeats with a period.

A remark: a loader that shuffles undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.roles import codes, keys
from traindx_tools.on_data.table import Array, View
from traindx_tools.rules import Rule, Threshold

RUNS = 0.2
PERIOD = 0.98
FEWEST = 100

RULE = Rule(
    id="D117",
    name="order",
    title="The rows are in an order that follows the label",
    severity=Severity.INFO,
    sees="how often neighbouring rows have the same label, by shard",
    matters="Without shuffling each batch holds one class, and the model forgets one while it learns the next.",
    alike=("Sorted on purpose, and shuffled by the loader.",),
    confirm=("Look whether the training loader shuffles, and with a buffer larger than a class.",),
    thresholds={
        "runs": Threshold(RUNS, "of the changes of label that a random order has", "fewer are no random order"),
        "period": Threshold(PERIOD, "share of rows equal to that a period before", "a round robin over classes"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A remark for each shard and label."""
    for data in view.sets:
        for name in data.labels:
            for shard in (s for s in data.shards if name in s.columns and s.rows >= FEWEST and s.numbers is None):
                y = codes(shard.columns[name], np.unique(keys(shard.columns[name])))
                shares = np.bincount(y) / len(y)
                expected = (1.0 - float((shares**2).sum())) * (len(y) - 1)
                changes = int((y[1:] != y[:-1]).sum())
                period = _period(y, len(shares))
                if expected > 20 and (changes < RUNS * expected or period):
                    how = (
                        f"repeats every {period} rows"
                        if period
                        else f"changes {changes:,} times in {len(y):,} rows ({expected:,.0f} in a random order)"
                    )
                    yield RULE.finding(
                        f"{name} of {short(shard)} {how}",
                        place(shard, name),
                        shard.name,
                        bearing=Bearing.COMPANION,
                        measured={
                            "field": name,
                            "changes": changes,
                            "expected": expected,
                            "period": period,
                            "kind": "periodic" if period else "sorted",
                        },
                    )


def _period(y: Array, kinds: int) -> int | None:
    """The period after which the labels repeat, where they do."""
    for period in {kinds, 2 * kinds}:
        if 2 <= period < len(y) // 4 and float((y[period:] == y[:-period]).mean()) >= PERIOD:
            return int(period)
    return None
