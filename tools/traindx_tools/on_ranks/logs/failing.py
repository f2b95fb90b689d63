"""Which rank failed first, told from what follows: by steps and by kinds of errors, never by clocks.

When one process ends, the others wait for it, lose their connection, are told to end and are killed when they do not.
A rank that waited in a collective, or complains of another, followed; so did one that ended without a word of its own
where a process says that its collective met another one. Of ranks with an error of their own the one that
came least far is the first; where they are equally far, the one whose error is the rarest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Location
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_ranks.logs import claims
from traindx_tools.on_ranks.logs.job import Rank, Start
from traindx_tools.on_ranks.logs.told import Claim

COMMON = 0.5
"""Share of the ranks that met one and the same error: it is not one rank's."""
_WORDLESS = (fatal_lines.NATIVE, fatal_lines.ABORTED)
_ORDER = ("device-memory", "host-memory", "segfault", "hardware", "host-lost", "exception", "killed", "exited")


@dataclass(frozen=True)
class Failure:
    """A rank that ended by itself. `step`: the last one that it recorded, NaN where it recorded none."""

    rank: int
    host: str
    kind: str
    type: str
    message: str
    place: str
    step: float
    where: Location
    source: str


def failed_first(start: Start) -> tuple[Failure, ...]:
    """The ranks that failed first and alike (one, or those of a host); empty where none did or all did the same."""
    found = [f for r in start.ranks.values() if (f := _failure(start, r)) is not None and not _parted(start, f)]
    if not found:
        return ()
    alike = Counter((f.kind, f.type) for f in found)
    common = {k for k, n in alike.items() if n > max(1, COMMON * len(start.ranks))}
    own = [f for f in found if (f.kind, f.type) not in common]
    if not own:
        return ()
    least = min((f.step for f in own if not math.isnan(f.step)), default=math.nan)
    first = [f for f in own if math.isnan(f.step) or f.step == least]
    best = min(first, key=lambda f: (_ORDER.index(f.kind) >= _ORDER.index("killed"), alike[f.kind, f.type],
                                     _ORDER.index(f.kind), f.rank))
    together = [f for f in first if (f.kind, f.type) == (best.kind, best.type)]
    same_host = [f for f in together if f.host == best.host and f.host]
    return tuple(same_host if len(same_host) == len(together) else together)


def _failure(start: Start, rank: Rank) -> Failure | None:
    if start.finished and (rank.told.finished or not rank.step < start.usual_step):
        return None
    own = next((f for f in rank.faults if f.level == 0), None)
    told = list(_claims(start, rank))
    if own is not None and (rank.wait is None or own.line < rank.wait.line):
        kind = own.kind
        if kind == "killed" and _followed(rank):
            return None
        return Failure(rank.rank, rank.host, kind, own.type, own.message, own.place, own.step,
                       rank.at(own.line, own.message, own.step), rank.source)
    if not told or _followed(rank):
        return None
    claim = min(told, key=lambda c: _ORDER.index(c.kind))
    quoted = Location(file=claim.source, line=claim.line, rank=rank.rank, quote=claim.text,
                      step=None if math.isnan(rank.step) else rank.step)
    return Failure(rank.rank, rank.host, claim.kind, claim.kind, claim.text, "", rank.step, quoted, claim.source)


def _parted(start: Start, failure: Failure) -> bool:
    """Whether two collectives that do not belong together met, and nothing else is said of how it ended.

    Native code ends by an exception that names no rank: the launcher then only tells that the process is gone.
    """
    return start.mismatch is not None and (failure.kind == claims.EXITED or failure.type in _WORDLESS)


def _followed(rank: Rank) -> bool:
    """Whether it waited for others or complained of them: what ended it then came after."""
    return rank.wait is not None or any(f.level > 0 for f in rank.faults)


def _claims(start: Start, rank: Rank) -> Iterator[Claim]:
    said = start.claims.get(rank.rank, ())
    if any(c.kind == claims.TOLD for c in said):
        return
    yield from (c for c in said if c.kind in _ORDER)


def consequences(start: Start, first: set[int]) -> str:
    """What the others met, as consequences, in words."""
    waited = sum(1 for r in start.ranks.values() if r.wait is not None and r.rank not in first)
    broken = sum(1 for r in start.ranks.values() if r.rank not in first and r.wait is None
                 and any(f.level == 2 for f in r.faults))
    ended = sum(1 for r in start.ranks.values() if r.rank not in first
                and any(c.kind in (claims.KILLED, claims.TOLD) for c in start.claims.get(r.rank, ())))
    parts = [f"{n:,} {'rank' if n == 1 else 'ranks'} {what}" for n, what in (
        (waited, "waited in a collective until the timeout"), (broken, "lost the connection to a peer"),
        (ended, "ended by the launcher")) if n]
    return f"; consequences: {', '.join(parts)}" if parts else ""
