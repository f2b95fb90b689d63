"""The ranks do not call the same collectives: few ranks leave the sequence that all others follow.

Sequence numbers count the collectives of a group on every rank, so that ranks are compared without clocks: by what the
watchdogs of the waiting ranks report, by traces of the program or of NCCL (`opCount`), by dumps of the flight recorder,
and by what TORCH_DISTRIBUTED_DEBUG=DETAIL or a barrier says. `kind`: "operation" (another one under the same number),
"shape" (the same one of other sizes), "missing" (a rank that never came), "met-another" (a process says that two do not
belong together, and few ranks had gone on to something else). Ranks that called other things from the beginning are
stages of a parallel model and no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.failing import failed_first
from traindx_tools.on_ranks.logs.job import Job, Rank, Start, named
from traindx_tools.on_ranks.logs.parting import AGREED, FEW, Parting, parted
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="R202",
    name="collectives-part",
    title="Ranks call different collectives",
    severity=Severity.CRITICAL,
    sees="Operation, shape and sequence number of collectives on every rank.",
    matters="The others wait until the timeout, or get wrong numbers: the rank that reports first is not at fault.",
    alike=("Stages and groups of a parallel model, which differ from the beginning.",
           "A rank that ended: its own error is the cause (R201)."),
    confirm=("Look for a collective under a condition on the rank, on data or on a time.",
             "TORCH_DISTRIBUTED_DEBUG=DETAIL names both operations at once; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 dumps "
             "the "
             "last ones of each rank: give the dumps beside the logs."),
    thresholds={"few": Threshold(FEW, "share of the ranks", "more are another stage or group"),
                "agreed": Threshold(AGREED, "collectives", "called alike before: stages never agree")},
)

_KINDS = ("operation", "shape")
"""Both collectives are known."""


def check(job: Job) -> Iterator[Finding]:
    """At most one finding, of the last start; none where a rank failed by itself."""
    start = job.last
    found = parted(start)
    if found is None or found.kind not in (*_KINDS, "missing", "met-another") or failed_first(start):
        return
    odd = start.ranks.get(found.ranks[0]) or next(iter(start.ranks.values()))
    yield RULE.finding(
        _statement(start, found, odd), odd.at(line_of(odd, found.number), odd.told.last[1], odd.step), odd.source,
        bearing=Bearing.CAUSE if found.kind in _KINDS else Bearing.SIGN,
        measured={"kind": found.kind, "ranks": found.ranks[:64], "rank": found.ranks[0], "host": odd.host,
                  "operation": str(found.usual or ""), "called": str(found.other or ""), "sequence": found.number,
                  "waiting": found.agreeing, "step": odd.step, "world_size": start.world, "seen": len(start.ranks)})


def line_of(rank: Rank, number: int | None) -> int:
    """The line of its wait in this collective, else its last one."""
    if rank.wait is not None and rank.wait.number == number:
        return rank.wait.line
    return rank.told.last[0] or rank.told.end_line


def met_words(start: Start) -> str:
    """What a process said when its collective met another one."""
    return f": {start.mismatch.text.removeprefix('what():').strip()[:200]}" if start.mismatch is not None else ""


def place_of(rank: Rank) -> str:
    """How far it came and what it said last, in words."""
    step = f" after step {rank.step:g}" if rank.step == rank.step else ""
    return f"{step}, whose last line is `{rank.told.last[1][:120]}`" if rank.told.last[1] else step


def _statement(start: Start, found: Parting, odd: Rank) -> str:
    who, sequence = named(found.ranks), f" (sequence number {found.number:,})" if found.number is not None else ""
    host = f" on {odd.host}" if odd.host and len(found.ranks) == 1 else ""
    others = f"{found.agreeing:,} other rank{'s' if found.agreeing != 1 else ''}"
    if found.kind == "operation":
        return f"{who}{host} called {found.other} where {others} called {found.usual}{sequence}"
    if found.kind == "shape":
        return f"{who}{host} called {found.other} where {others} called {found.usual}: other shapes{sequence}"
    if found.kind == "met-another":
        return f"{who}{host} called another collective than {others}, and they met{place_of(odd)}{met_words(start)}"
    usual = f"{found.usual}{sequence}" if found.usual is not None else "the barrier"
    return f"{who}{host} never came to {usual}, in which {others} waited{place_of(odd)}"
