"""One rank is still in data loading while all others wait for it in a collective.

Its last line (or the innermost frame of a dump of its stacks) speaks of fetching, reading or opening; it has no
watchdog's report, no error, and the collective in which the others wait is one that it never entered. A file system, an
object store, a damaged shard or a dead worker holds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.failing import failed_first
from traindx_tools.on_ranks.logs.job import Job, named
from traindx_tools.on_ranks.logs.parting import FEW, parted, waiting_words
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="R204",
    name="rank-in-data-loading",
    title="One rank is stuck in data loading",
    severity=Severity.CRITICAL,
    sees="The last line of the rank that is not in the collective in which all others wait.",
    matters="The others end by their timeout, and their logs say nothing of the file or store that holds this rank.",
    alike=("A loader that is slow everywhere: the steps are long on all ranks (L402).",),
    confirm=("py-spy dump --pid PID on that rank; read the file that its last line names on that host.",
             "DataLoader(timeout=600) turns the wait into an error that names the worker."),
    thresholds={"few": Threshold(FEW, "share of the ranks", "more is no single rank's trouble")},
)


def check(job: Job) -> Iterator[Finding]:
    """At most one finding, of the last start."""
    start = job.last
    found = parted(start)
    if found is None or found.kind != "data-loading" or failed_first(start):
        return
    odd = start.ranks[found.ranks[0]]
    host = f" on {odd.host}" if odd.host else ""
    last = odd.told.stack or odd.told.last[1]
    sequence = f" (sequence number {found.number:,})" if found.number is not None else ""
    after = f" after step {odd.step:g}" if odd.step == odd.step else ""
    yield RULE.finding(
        f"{named(found.ranks)}{host} is stuck in data loading{after}: its last line is `{last[:140]}`, while "
        f"{waiting_words(start, found)} for it in {found.usual or 'a collective'}{sequence}",
        odd.at(odd.told.last[0], last, odd.step), odd.source, bearing=Bearing.CAUSE,
        measured={"kind": "data-loading", "ranks": found.ranks[:64], "rank": odd.rank, "host": odd.host,
                  "operation": "data loading", "waiting_in": str(found.usual or ""), "sequence": found.number,
                  "step": odd.step, "last": last[:200], "waiting": found.agreeing, "seen": len(start.ranks)})
