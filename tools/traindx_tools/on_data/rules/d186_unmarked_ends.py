"""The chain of rows breaks off where no field of ends says so.

In transitions the next state of a row is the state of the row behind it, but for the last one of an episode. Where the
flag is not set there, the target takes the value of a state that nobody ever went on from: no end is worse than
another, and values have no anchor. Ends by a limit of time, all after the same number of rows, may well be without a
flag.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.episode_ends import FEWEST, MOST_TRUE, SHARE, Ends, ends_of
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SURE = 0.3

RULE = Rule(
    id="D186",
    name="unmarked-ends",
    title="Episodes end where no field marks an end",
    severity=Severity.HIGH,
    sees="where a field is not the next row of the field that it follows, beside fields of few marks (ends, starts)",
    matters="Targets take the value of the state behind an end, and windows reach over from one episode into another.",
    alike=("Ends by a limit of time: all after the same number of rows, and left alone.",
           "Recordings that were cut anywhere: low, unless the states there lie beyond all others.",
           "Rows in any order: no field is the next row of another."),
    confirm=("Print flag, next state and the state of the next row around three named rows.",
             "Set the flag at the named rows in a copy and train again."),
    thresholds={
        "fewest": Threshold(FEWEST, "ends", "without a mark"),
        "share": Threshold(SHARE, "of all ends", "without a mark"),
        "marks": Threshold(MOST_TRUE, "of the rows", "that a field of ends may mark"),
        "beyond": Threshold(SURE, "of the ends without a mark", "whose next state lies beyond all others"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each file."""
    for data in view.sets:
        for shard in data.shards:
            ends = ends_of(shard)
            if ends is not None and len(ends.unmarked) >= max(FEWEST, SHARE * len(ends.breaks)):
                yield _finding(shard, ends)


def _finding(shard: Shard, ends: Ends) -> Finding:
    count, total = len(ends.unmarked), len(ends.breaks)
    named = listed(ends.flags, 3)
    mark = f"{named} mark{'s' * (len(ends.flags) == 1)} an end"
    said = (
        f"{ends.chain.following} of a row of {short(shard)} is not {ends.chain.own} of the next one behind {total:,} "
        f"rows, where episodes end, and at {count:,} of them ({percent(count / total)}) no field says so ({mark} "
        f"nowhere there): {listed([shard.row(int(i)) for i in ends.unmarked[:3]], 3)} and others"
    )
    said += f"; ends after {ends.limit:,} rows, a limit of time, are not counted" if ends.limit else ""
    said += (f"; in {percent(ends.beyond)} of them {ends.chain.following} lies beyond all {ends.chain.own}: these are "
             "terminal states, and targets take their value as if the episode went on (bootstrap past the end)"
             if ends.beyond >= SURE else
             "; targets that take the next state's value reach past the end there")
    sure = ends.beyond >= SURE
    return RULE.finding(
        said,
        place(shard, ends.flags[0]),
        shard.name,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.MEDIUM if ends.marked else Severity.LOW,
        measured={"field": ends.flags[0], "fields": ends.flags, "own": ends.chain.own,
                  "following": ends.chain.following,
                  "unmarked": count, "ends": total, "share": count / total, "beyond": ends.beyond, "limit": ends.limit,
                  "rows": (int(ends.unmarked[0]), int(ends.unmarked[-1])), "shard": short(shard), "kind": UNKNOWN},
    )
