"""One rank ended by itself; what all others report follows from it.

A process that raises, runs out of memory, is killed or loses its host leaves the others in a collective. Minutes later
their watchdogs speak, connections break, the launcher ends who is left. Logs are read of all ranks, whatever their
clocks say: a rank that waited or complains of a peer followed, and so did one that the launcher had told to end; of the
ranks with an error of their own the one that came least far is the first. An error that most ranks met alike is none of
one rank's, and is left to the rules for errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.failing import COMMON, Failure, consequences, failed_first
from traindx_tools.on_ranks.logs.job import Job, Start, named
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="R201",
    name="rank-failed-first",
    title="One rank failed first",
    severity=Severity.CRITICAL,
    sees="How each rank's log ends, and what launchers (torchrun, Slurm, Kubernetes, JAX) say of each rank.",
    matters="What the others report is a consequence: only this rank's error tells the cause.",
    alike=("A rank that the launcher killed at the end: it had waited, or was told to end.",
           "An error that all ranks meet alike."),
    confirm=("Read the log of this rank around the line, and dmesg and the scheduler's events of its host.",),
    thresholds={"common": Threshold(COMMON, "share of the ranks", "an error of more than half is not one rank's")},
)

MOST = 160
"""Characters of an error's text that are told."""
_PREFIX = re.compile(r"^(?:\[rank ?\d{1,6}\]:? ?)+")
_WORDS = {"device-memory": "ran out of device memory", "host-memory": "was ended by the kernel for lack of host memory",
          "segfault": "crashed in native code (segmentation fault)", "hardware": "met a fault of the device",
          "host-lost": "was lost with its host", "exception": "raised an exception of its own",
          "killed": "was killed from outside (SIGKILL)", "exited": "ended without a word"}


def check(job: Job) -> Iterator[Finding]:
    """One finding for the last start; for earlier ones, which a restart made good, a lower one."""
    for start in reversed(job.starts):
        first = failed_first(start)
        if first:
            yield _finding(job, start, first)


def _short(said: str) -> str:
    """What it says without the prefix of its process, cut behind a sentence or at least a word."""
    said = _PREFIX.sub("", said)
    if len(said) <= MOST:
        return said
    whole, dot, _ = said[:MOST].rpartition(". ")
    return whole if dot and len(whole) > MOST // 2 else f"{said[:MOST].rpartition(' ')[0].rstrip('.,;:')} ..."


def _finding(job: Job, start: Start, first: tuple[Failure, ...]) -> Finding:
    one, ranks = first[0], tuple(f.rank for f in first)
    host = f" on {one.host}" if one.host and len({f.host for f in first}) == 1 else ""
    after = f" after step {one.step:g}" if one.step == one.step else " before its first step"
    said = one.message if one.kind in ("host-lost", "killed", "exited") or one.type in one.message else (
        f"{one.type}: {one.message}")
    restarted = start is not job.last
    which = f" in start {start.number} of {len(job.starts)}" if len(job.starts) > 1 else ""
    words = _WORDS[one.kind] if len(ranks) == 1 else _WORDS[one.kind].replace("was ", "were ")
    place = f" at {one.place}" if one.place else ""
    return RULE.finding(
        f"{named(ranks)}{host} {words}{after}{which}{place}: {_short(said)}{consequences(start, set(ranks))}",
        one.where, one.source, bearing=Bearing.COMPANION if restarted else Bearing.CAUSE,
        severity=Severity.LOW if restarted else Severity.HIGH if one.kind == "exited" else None,
        measured={"kind": one.kind, "type": one.type, "ranks": ranks[:64], "rank": one.rank, "host": one.host,
                  "step": one.step, "world_size": start.world, "seen": len(start.ranks), "start": start.number})
