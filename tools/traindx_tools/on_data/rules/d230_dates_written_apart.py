"""Dates of one part are written day first, those of the others are not.

A reader without a stated format takes 05/03 for the 3rd of May, silently, wherever the day is at most 12; only what
cannot be a month is read as meant. Rows land on other days, and all that is made of the date (order, season, weekday,
lags, joins) is wrong for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.date_forms import BOTH, DATED, FEWEST, YEAR, Apart, apart
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D230",
    name="dates-written-apart",
    title="Dates of one part are written in another order",
    severity=Severity.HIGH,
    sees="dates in texts of each file, and whether the number above 12 stands first or second",
    matters="Where day and month are both at most 12 a reader exchanges them, without an error.",
    alike=("A reader that states the format, or `dayfirst=True`: it is told as a remark.",
           "Dates with the year first everywhere: nothing is said."),
    confirm=("Parse the column and count rows for each day of the month: the first twelve hold what others lack.",
             "Look for gaps: after reading, the dates of the part do not follow one another."),
    thresholds={
        "dates": Threshold(FEWEST, "dates", "of each part"),
        "dated": Threshold(DATED, "share of the texts of a part", "that are dates"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each field."""
    for data in view.sets:
        for found in apart([s for s in data.shards if s.rows]):
            yield _finding(found, view.hints.day_first)


def _finding(found: Apart, stated: str) -> Finding:
    odd, other = found.odd, found.other
    if odd.order == BOTH:
        said = (f"{found.field} of {short(odd.shard)} holds dates with the day first and others with the month first "
                f'(row {odd.row}: "{odd.example}")')
    else:
        year = "the year" if other.order == YEAR else "the month"
        said = (f"{found.field} of {short(odd.shard)} is written with the day first (row {odd.row}: \"{odd.example}\"; "
                f"the first number exceeds 12 in {percent(odd.told)} of its dates), that of {short(other.shard)} with "
                f'{year} first ("{other.example}")')
    known = f"; {stated} reads dates with the day first" if stated else ""
    return RULE.finding(
        f"{said}: read by one rule, day and month of {percent(odd.open)} of its rows change places{known}",
        place(odd.shard, found.field), odd.shard.name, bearing=Bearing.SIGN,
        severity=Severity.INFO if stated else Severity.HIGH,
        measured={"field": found.field, "fields": (found.field,), "shard": short(odd.shard), "kind": "dates",
                  "part": short(odd.shard), "order": odd.order, "other": other.order, "open": round(odd.open, 4)})
