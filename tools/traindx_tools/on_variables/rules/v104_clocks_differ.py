"""Two tables are joined by times of different clocks: other units, other zones.

`kind`: "unit": one counts seconds since 1970 and the other thousandths or millionths of them; "zone": the program
itself made both local times, of zones that differ; "shift": few times find a partner, and nearly all do when one clock
is moved by whole quarters of an hour; "values": numbers of the two tables go together far better when one clock is
moved by some hours than as they are joined (a sign: effects have delays too).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.clocks import APART, FOUND, GAIN, TIGHT, Clocks
from traindx_tools.rules import Rule, Threshold

SOURCE = "joins of the running program"

RULE = Rule(
    id="V104",
    name="clocks-differ",
    title="Tables are joined by times of different clocks",
    severity=Severity.HIGH,
    sees="the keys of `merge`, `merge_asof`, `join`, `searchsorted` and `interp`: their units, the zones they were "
         "made from, partners and the numbers beside them at each shift of up to 14 hours",
    matters="each row gets the values of another time, or none and then what fills the gap",
    alike=("a lag that is made on purpose: both tables hold one series, or most times find a partner",
           "an effect that comes some hours later: the shift is a sign only"),
    confirm=("print(left[key].min(), right[key].min(), left[key].dt.tz, right[key].dt.tz)",
             "join once more with one key moved, and compare the share of rows with a partner"),
    thresholds={"apart": Threshold(APART, "of the times find a partner as they are", "gaps are smaller"),
                "found": Threshold(FOUND, "of them find one with a shift", "no chance among a hundred shifts"),
                "tight": Threshold(TIGHT, "of the variance is explained at the shift", "a relation, no trend"),
                "gain": Threshold(GAIN, "of the variance more than as joined", "neighbouring hours differ by less")},
)


@dataclass(frozen=True)
class Join:
    """One call, and how its clocks differ."""

    call: str
    clocks: Clocks
    file: str
    line: int


def check(seen: Sequence[Join], rank: int = 0) -> Iterator[Finding]:
    """One finding for each line."""
    told: set[tuple[str, int]] = set()
    for join in seen:
        if (join.file, join.line) in told:
            continue
        told.add((join.file, join.line))
        c = join.clocks
        sign = c.kind == "values"
        yield RULE.finding(
            f"{join.call}: {_TEXTS[c.kind](c)}", Location(file=join.file, line=join.line, rank=rank), SOURCE,
            bearing=Bearing.SIGN if sign else Bearing.CAUSE, severity=Severity.MEDIUM if sign else None,
            measured={"kind": c.kind, "left": c.left, "right": c.right, "hours": c.hours,
                      "before": round(c.before, 4), "after": round(c.after, 4)})


_TEXTS = {
    "unit": lambda c: (f"the times of the one side count {c.left} since 1970 and those of the other {c.right}; in one "
                       f"unit {c.after:.0%} of them lie within the others"),
    "zone": lambda c: (f"the times of the left table were made local from {c.left} and those of the right one from "
                       f"{c.right}: the right clock is {abs(c.hours):g} h {'ahead' if c.hours > 0 else 'behind'}"),
    "shift": lambda c: (f"{c.before:.0%} of the left times have a partner, and {c.after:.0%} have one {c.hours:+g} h "
                        "away"),
    "values": lambda c: (f"`{c.left}` and `{c.right}` share {c.before:.0%} of their variance as they are joined, and "
                         f"{c.after:.0%} with the right clock read {c.hours:+g} h away"),
}
