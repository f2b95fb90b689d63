"""Reading a row of a data set writes into what it keeps of it: what T728 says, of a program of JAX.

The data sets are objects of the program's own classes that have a length and are read by number. The entry of a row is
compared before it is fetched and after, at each of its visits, without regard to who asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_torch.rules import t728_reading_writes
from traindx_tools.on_torch.rules.t728_reading_writes import FEWEST_ROWS, LEAST_SHARE
from traindx_tools.rows.stored_rows import Written
from traindx_tools.rules import Rule, Threshold

SOURCE = "the running process"

RULE = Rule(
    id="J809",
    name="jax-reading-writes",
    title="Reading a row changes what the data set keeps",
    severity=Severity.HIGH,
    sees="checksums of what a data set keeps of some rows, before they are fetched and after, at each of their visits",
    matters="each epoch trains on data that were changed once more; evaluation data stay as they were",
    alike=("a cache that is filled at the first visit", "values that are clipped or cast in place: once alone",
           "counts of visits: single numbers are left out"),
    confirm=("before = ds.images.copy(); ds[0]; ds[0]; print((before == ds.images).all())",),
    thresholds={
        "rows": Threshold(FEWEST_ROWS, "rows that were written to at two visits and more", "one may be a coincidence"),
        "share": Threshold(LEAST_SHARE, "of the rows with two visits and more", "a transform may be drawn at random"),
    },
)


def check(seen: Written, calls: int, rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    yield from t728_reading_writes.check(seen, calls, rank, RULE, SOURCE)
