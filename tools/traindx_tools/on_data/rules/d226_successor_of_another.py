"""At the last row of each episode the next state is the first of another episode.

Transitions that were made by moving one array on by a row (`next_obs = obs[1:]`) are right within an episode. Where a
field marks its end, the row behind belongs to another one: the stored step leads from where the episode ended to where
the next began, which nothing in the world does. Where the mark says that the chain goes on (a task without an end, a
log that was cut) the step is no longer than others, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.chains import Chain, chains_of
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number, percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST, MOST_MARKED, GOES_ON, JUMPS, FAR = 20, 0.34, 0.98, 0.8, 0.99

RULE = Rule(
    id="D226",
    name="successor-of-another",
    title="The next state of an episode's last row is the first state of the next episode",
    severity=Severity.HIGH,
    sees="fields of which one is the next row of another, at the rows that a field of few marks names as ends",
    matters="A model of the world, or a target that takes the next state's value, learns jumps that never happen.",
    alike=("Marks behind which the chain goes on with steps as long as others.",
           "Ends whose own next state is stored: the chain breaks off there, as it should.",
           "Targets that are masked where an episode terminates: there the stored state is of no use anyway."),
    confirm=("Print state, next state and the state of the row behind it at three named rows.",
             "Leave the last row of each episode out in a copy and train again."),
    thresholds={
        "fewest": Threshold(FEWEST, "marked rows", "of a file"),
        "marks": Threshold(MOST_MARKED, "of the rows", "that a field of ends may mark"),
        "goes_on": Threshold(GOES_ON, "of the marked rows", "at which the next state is the state of the row behind"),
        "jumps": Threshold(JUMPS, "of them", "with a step that is longer than 99 % of the unmarked ones"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each file."""
    for data in view.sets:
        for shard in data.shards:
            found = next((f for c in chains_of(shard) if (f := _of_chain(shard, c)) is not None), None)
            if found is not None:
                yield found


def _of_chain(shard: Shard, chain: Chain) -> Finding | None:
    steps = _steps(shard, chain)
    ends = np.zeros(shard.rows - 1, bool)
    named: list[str] = []
    for name, marks in _marks(shard):
        ends |= marks[:-1]
        named.append(name)
    if not FEWEST <= int(ends.sum()) <= MOST_MARKED * len(ends):
        return None
    goes_on = float((~chain.broken[ends]).mean())
    usual = float(np.quantile(steps[~ends], FAR))
    long = steps[ends] > usual
    if goes_on < GOES_ON or float(long.mean()) < JUMPS or share_tail(int(long.sum()), len(long), 1 - FAR) > LEVEL:
        return None
    return _finding(shard, chain, named, np.flatnonzero(ends), steps, usual)


def _marks(shard: Shard) -> Iterator[tuple[str, Array]]:
    """Fields of 0 and 1 that mark few rows."""
    for name, column in shard.columns.items():
        if column.kind != "number" or column.rows != shard.rows or int(np.prod(column.row_shape)) != 1 or (
                column.missing is not None or column.values.dtype.kind not in "biuf"):
            continue
        values = np.asarray(column.values).reshape(-1)
        if np.isin(values[:2000], (0, 1)).all() and np.isin(values, (0, 1)).all():
            marks = values.astype(bool)
            if 0 < int(marks.sum()) <= MOST_MARKED * shard.rows:
                yield name, marks


def _steps(shard: Shard, chain: Chain) -> Array:
    """float64 (rows - 1,): how far the next state of a row is from its own, each number in its usual steps."""
    own, after = (np.asarray(shard.columns[n].values, np.float64).reshape(shard.rows, -1)[:-1]
                  for n in (chain.own, chain.following))
    apart = np.abs(np.nan_to_num(after - own))
    return np.asarray((apart / np.maximum(np.median(apart, axis=0), 1e-12)).max(axis=1))


def _finding(shard: Shard, chain: Chain, named: Sequence[str], rows: Array, steps: Array, usual: float) -> Finding:
    return RULE.finding(
        f"{chain.following} of {short(shard)} is {chain.own} of the next row at all {len(rows):,} rows that "
        f"{listed(named, 3)} mark{'s' * (len(named) == 1)} as the end of an episode too "
        f"({percent(len(rows) / shard.rows)} of the rows): it is the first state of the next episode, "
        f"{number(float(np.median(steps[rows])))} usual steps away where 99 % of the others are within "
        f"{number(usual)}: the array was moved on by one row across the ends; "
        f"{listed([shard.row(int(i)) for i in rows[:3]], 3)} and others",
        place(shard, chain.following),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": chain.following, "fields": (chain.following, chain.own), "flags": tuple(named),
                  "count": len(rows), "share": len(rows) / shard.rows, "rows": (int(rows[0]), int(rows[-1])),
                  "kind": "across", "shard": short(shard)},
    )
