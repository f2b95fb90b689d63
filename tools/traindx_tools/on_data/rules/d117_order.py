"""The rows are sorted by their label, or the label repeats with a period; one file runs against the time of the others.

The first is a remark: a loader that shuffles undoes it. That the times of one file fall, or are in no order, while
those of all its siblings rise is more: windows, lags and a split by position are wrong in that file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import codes, keys
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.times import times_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RUNS = 0.2
PERIOD = 0.98
FEWEST = 100
IN_ORDER = 20
SIBLINGS = 4
NO_ORDER = 0.9

RULE = Rule(
    id="D117",
    name="order",
    title="The rows are in an order that follows the label",
    severity=Severity.INFO,
    sees="how often neighbouring rows have the same label, and whether times rise, by shard",
    matters="Without shuffling each batch holds one class, and the model forgets one while it learns the next.",
    alike=("Sorted on purpose, and shuffled by the loader.",),
    confirm=("Look whether the training loader shuffles, and with a buffer larger than a class.",),
    thresholds={
        "runs": Threshold(RUNS, "of the changes of label that a random order has", "fewer are no random order"),
        "no_order": Threshold(NO_ORDER, "of the steps lead forward", "of one file, where in all others all steps do"),
        "siblings": Threshold(SIBLINGS, "files", "fewer tell no order that they share"),
        "period": Threshold(PERIOD, "share of rows equal to that a period before", "a round robin over classes"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A remark for each shard and label."""
    for data in view.sets:
        for name in data.fields:
            yield from _against_time(data, name)
        for name in data.labels:
            for shard in (f for s in data.shards if name in (f := s.full).columns and f.rows >= FEWEST
                          and f.numbers is None):
                y = codes(shard.columns[name], distinct(keys(shard.columns[name])))
                shares = np.bincount(y) / len(y)
                expected = (1.0 - float((shares**2).sum())) * (len(y) - 1)
                changes = int((y[1:] != y[:-1]).sum())
                period = _period(y, len(shares), 1.0 - float((shares**2).sum()))
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


def _against_time(data: DataSet, name: str) -> Iterator[Finding]:
    """A finding for each file whose times are not in the order of its siblings'."""
    shards = [s for s in data.shards if name in s.columns and s.rows >= IN_ORDER and s.numbers is None]
    if len(shards) < SIBLINGS:
        return
    seen = [times_of(s.columns[name]) for s in shards[:2]]
    if not any(t is not None and _rising(t) == 1.0 for t in seen):
        return
    seen = [times_of(s.columns[name]) for s in shards]
    rising = [None if t is None else _rising(t) for t in seen]
    usual = [r for r in rising if r is not None and r == 1.0]
    odd = [i for i, r in enumerate(rising) if r is not None and r < NO_ORDER]
    if len(usual) + len(odd) < len(shards) or not 0 < len(odd) <= len(shards) / 4:
        return
    for i in odd:
        times, shard = seen[i], shards[i]
        assert times is not None
        back = np.flatnonzero(np.diff(times) < 0)
        how = "fall from row to row" if rising[i] == 0.0 else f"rise in {percent(float(rising[i] or 0.0))} of the steps"
        yield RULE.finding(
            f"the times in {name} of {short(shard)} {how}, and rise throughout in its {len(usual)} siblings: "
            f"{rows(shard, back + 1)} lie before the row above",
            place(shard, name),
            shard.name,
            bearing=Bearing.SIGN,
            severity=Severity.MEDIUM,
            title="The rows of one file are in another order of time",
            measured={"field": name, "rising": rising[i], "siblings": len(usual), "shard": short(shard),
                      "rows": tuple(int(k) + 1 for k in back[:20]),
                      "kind": "reversed-time" if rising[i] == 0.0 else "no-time-order"},
        )


def _rising(times: Array) -> float | None:
    """The share of the steps between different values that lead forward; None where most rows repeat the one above."""
    steps = np.diff(times)
    moving = steps[steps != 0]
    return float((moving > 0).mean()) if len(moving) >= max(IN_ORDER // 2, len(steps) // 4) else None


def _period(y: Array, kinds: int, differ: float) -> int | None:
    """The period after which the labels repeat, where they do.

    `differ`: the share of pairs of rows that differ in a random order. Of a label that is nearly always the same, few
    differ at any distance.
    """
    most = min(1.0 - PERIOD, differ / 4)
    for period in {kinds, 2 * kinds}:
        if 2 <= period < len(y) // 4 and float((y[period:] != y[:-period]).mean()) <= most:
            return int(period)
    return None
