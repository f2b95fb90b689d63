"""Reading a row of the dataset writes into what the dataset keeps of it.

An index of an array by a number is a view, and a list gives the object that it holds: what a transform cuts out, adds,
scales or prefixes in place is still there at the next visit, and is done once more. The first epoch is healthy; then
holes, noise and prefixes pile up in the training data alone. Seen in the reading itself: the entry of a row is compared
before it is fetched and after, and an entry that is written to once alone (a cache that is filled, a clip) is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.stored_rows import VISITS, Written
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: stored rows"
FEWEST_ROWS, LEAST_SHARE = 3, 0.25

RULE = Rule(
    id="T728",
    name="reading-writes",
    title="Reading a row changes what the dataset keeps",
    severity=Severity.HIGH,
    sees="checksums of what the dataset keeps of some rows, before they are fetched and after, at each of their visits",
    matters="each epoch trains on data that were changed once more; evaluation data stay as they were",
    alike=("a cache that is filled at the first visit", "values that are clipped or cast in place: once alone",
           "counts of visits and weights of a sampler: single numbers are left out"),
    confirm=("before = ds.images.copy(); ds[0]; ds[0]; print((before == ds.images).all())",),
    thresholds={
        "rows": Threshold(FEWEST_ROWS, "rows that were written to at two visits and more", "one may be a coincidence"),
        "share": Threshold(LEAST_SHARE, "of the rows with two visits and more", "a transform may be drawn at random"),
    },
)


def check(seen: Written, step: int, rank: int = 0, rule: Rule = RULE, source: str = SOURCE) -> Iterator[Finding]:
    """At most one finding. `rule`, `source`: of another framework's programs, which are judged alike."""
    if seen.written < min(FEWEST_ROWS, seen.rows) or seen.written < LEAST_SHARE * seen.rows or not seen.written:
        return
    column = f"`{seen.column}`" if seen.column else "its list"
    how = "; this line writes to them" if seen.known else ""
    yield rule.finding(
        f"reading a row of {seen.dataset} changes what {column} keeps of it: {seen.written} of {seen.rows} rows that "
        f"were looked at had other values after a read than before it at {VISITS} visits and more (up to "
        f"{seen.visits}){how}",
        Location(file=seen.file, line=seen.line, step=float(step), rank=rank), source, bearing=Bearing.CAUSE,
        measured={"attribute": seen.column or "the list", "rows": seen.written, "watched": seen.rows,
                  "visits": seen.visits})
