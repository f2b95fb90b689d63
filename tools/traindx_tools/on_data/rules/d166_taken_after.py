"""Of two times of a row the one lies before the other in all parts, and behind it in one.

A feature is as of a time, and the outcome has a date or a window. Where features of one region, source or file were
taken behind that, they know what they are to predict, in these rows alone. Which time is whose is told by no name: what
all other rows keep, one part breaks.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.time_order import FEWEST, Times, times_in
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

INSIDE = 0.05
OUTSIDE = 0.005
EACH = 10
SLIGHT = 0.25
DAY = 86_400.0

RULE = Rule(
    id="D166",
    name="taken-after",
    title="A time of one part lies behind the one that it precedes everywhere else",
    severity=Severity.HIGH,
    sees="pairs of times of each row, of one table or of two with an id in common, by file, split and group",
    matters="Features that were taken behind the outcome know it: the model looks good, and is useless where nothing "
            "has happened yet.",
    alike=(
        "Two times in no order: as often one way as the other everywhere.",
        "A few wrong entries in all parts.",
        "A clock that is off by hours, where both times are days apart.",
    ),
    confirm=("Print both times of the named rows, and ask when their features were computed.",
             "Leave the named rows out, or compute their features as of the earlier time, and evaluate again."),
    thresholds={
        "inside": Threshold(INSIDE, "share of the part's rows", "whose time lies behind"),
        "outside": Threshold(OUTSIDE, "share of all other rows", "whose time does, at most"),
        "slight": Threshold(SLIGHT, "of the usual distance", "by which times lie behind: below it is medium at most"),
        "rows": Threshold(FEWEST, "rows", "that have both times"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and pairs of times"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of times and the part that stands out most."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows and s.numbers is None)
        times = times_in(view, group) if group else []
        cuts = list(cuts_of(group, data.labels)) if len(times) > 1 else []
        told: set[tuple[str, str]] = set()
        found = [f for pair in itertools.permutations(times, 2) for f in _of_pair(group, pair, cuts, view.comparisons)]
        for _, finding in sorted(found, key=lambda f: -f[0]):
            key = str(finding.measured["field"]), str(finding.measured["part"])
            if key not in told:
                told.add(key)
                yield finding


def _of_pair(
    group: Sequence[Shard], pair: tuple[Times, Times], cuts: Sequence[Cut], comparisons: int
) -> Iterator[tuple[float, Finding]]:
    first, second = pair
    if first.file and second.file:
        return  # both of another table, which is asked by itself
    a, b = (np.concatenate(t.parts) for t in pair)
    both = np.isfinite(a) & np.isfinite(b)
    behind = both & (a > b)
    if both.sum() < FEWEST or behind.sum() < EACH:
        return
    best: tuple[float, Cut, int] | None = None
    for cut in cuts:
        member = np.concatenate(cut.member)
        for part in range(len(cut.names)):
            inside = both & (member == part)
            rest = both & (member != part)
            if min(int(behind[inside].sum()), int(rest.sum()) // EACH) < EACH:
                continue
            within, without = float(behind[inside].mean()), float(behind[rest].mean())
            tries = comparisons * len(cuts) * len(cut.names)
            p = share_tail(int(behind[inside].sum()), int(inside.sum()), max(without, 1.0 / int(rest.sum()))) * tries
            kept = int((rest & (a < b)).sum())
            if within >= INSIDE and without <= OUTSIDE and p < LEVEL and kept >= FEWEST / 2 and (
                    best is None or within > best[0]):
                best = within, cut, part
    if best is not None:
        yield best[0], _finding(group, pair, best[1], best[2], behind, a - b)


def _finding(
    group: Sequence[Shard], pair: tuple[Times, Times], cut: Cut, part: int, behind: Array, apart: Array
) -> Finding:
    first, second = pair
    member = np.concatenate(cut.member)
    hits = np.flatnonzero(behind & (member == part))
    starts = np.cumsum([0, *(s.rows for s in group)])
    at = int(np.searchsorted(starts, hits[0], side="right")) - 1
    shard = group[at]
    mine = hits[(hits >= starts[at]) & (hits < starts[at + 1])] - starts[at]
    inside = np.isfinite(apart) & (member == part)
    within, without = float(behind[inside].mean()), float(behind[np.isfinite(apart) & (member != part)].mean())
    usual = float(np.median(-apart[np.isfinite(apart) & (member != part)]))
    slight = float(np.median(apart[hits])) < SLIGHT * usual  # scatter may reach so far over
    names = [f"{t.name} of {os.path.basename(t.file)}" if t.file else t.name for t in pair]
    return RULE.finding(
        f"{names[0]} lies behind {names[1]} in {len(hits):,} rows of {_told(cut, part)} ({percent(within)}), by "
        f"{_long(float(np.median(apart[hits])), first)} at the median, and in {percent(without)} of all other rows: "
        f"{rows(shard, mine)}; whatever is as of {first.name} there may know what {second.name} is the time of",
        place(shard, first.name),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=None if cut.origin and not slight else Severity.MEDIUM,
        measured={"field": first.name, "fields": (first.name, second.name), "by": cut.by or "file",
                  "part": cut.names[part], "count": len(hits), "share": within, "others": without,
                  "rows": tuple(int(i) for i in mine[:20]), "kind": "after", "shard": short(shard)},
    )


def _told(cut: Cut, part: int) -> str:
    return cut.told(part).removeprefix("the rows of ")


def _long(seconds: float, times: Times) -> str:
    """Days or hours of seconds, or of the milli-, micro- or nanoseconds since 1970 that a file holds; a number of
    another scale as it is."""
    largest = float(np.nanmax(np.abs(np.concatenate(times.parts))))
    if largest < 9e8:
        return f"{seconds:,.4g}"
    seconds /= next(per for per in (1.0, 1e3, 1e6, 1e9) if largest < 1e11 * per or per == 1e9)
    return f"{seconds / DAY:,.1f} days" if seconds >= DAY else f"{seconds / 3600:,.1f} hours"
