"""A column far from zero is kept in a float that cannot hold its digits: neighbouring values become one.

Seconds since 1970 in float32 come in steps of 128 s, milliseconds in steps of 131 s, identifiers above 16,777,216 in
steps of 2. A phase, a difference or a lookup computed from them is of the rounded value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.digits import CLOSE, OFFSET, Digits
from traindx_tools.on_variables.filling import line_that_makes
from traindx_tools.on_variables.look import Place
from traindx_tools.rules import Rule, Threshold

SOURCE = "variables of the running program"

RULE = Rule(
    id="V102",
    name="digits-lost",
    title="A column's offset takes up the digits of its number format",
    severity=Severity.HIGH,
    sees="float arrays and tables that the program holds: magnitude, spread and distance of neighbouring values",
    matters="times, identifiers and phases that are computed from it are wrong by more than rows differ",
    alike=("quantities of many sizes (prices, counts): no offset", "values that lie many steps of the format apart"),
    confirm=("Read the column as float64 or as an integer and count its different values.",
             "Subtract the first value before the conversion and run again."),
    thresholds={"offset": Threshold(OFFSET, "spread over magnitude", "one part in twenty: an offset and a small rest"),
                "close": Threshold(CLOSE, "steps between neighbours", "rounding by 6 % of that distance and more")},
)


def check(seen: Sequence[tuple[Place, Digits]], rank: int = 0) -> Iterator[Finding]:
    """One finding for each variable, for its first column; at most three."""
    told: dict[str, None] = {}
    for (file, function, path), d in seen:
        leaf = path.replace("[*]", "")
        if leaf in told or len(told) >= 3:
            continue
        told[leaf] = None
        what = f"`{leaf}{d.column}`" + (f" of {function}()" if function else "")
        yield RULE.finding(
            f"{what} holds {d.low:,.0f} to {d.high:,.0f} as {d.dtype}, which has steps of {d.step:g} there: "
            f"{d.rows:,} rows have {d.distinct:,} different values",
            Location(file=file, line=line_that_makes(file, function, leaf), rank=rank), SOURCE, bearing=Bearing.CAUSE,
            measured={"variable": leaf + d.column, "dtype": d.dtype, "step": d.step, "low": d.low, "high": d.high,
                      "rows": d.rows, "distinct": d.distinct})
