"""How the ranks of a job ended, identical ones together."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from traindx_tools.on_ranks.logs.job import Job, Rank, Start, named
from traindx_tools.on_ranks.logs.words import UNNUMBERED, template_of


@dataclass(frozen=True)
class Ending:
    """Ranks that ended alike."""

    ranks: str
    count: int
    how: str


def endings(job: Job) -> list[Ending]:
    """How the ranks of the last start ended, the smallest group first: the odd one stands on top."""
    groups: dict[str, list[int]] = defaultdict(list)
    for r in job.last.ranks.values():
        groups[_how(job.last, r)].append(r.rank)
    ordered = sorted(groups.items(), key=lambda g: (len(g[1]), g[1]))
    return [Ending(named(ranks), len(ranks), how) for how, ranks in ordered]


def _how(start: Start, rank: Rank) -> str:
    after = f" after step {rank.step:g}" if not math.isnan(rank.step) else ""
    own = next((f for f in rank.faults if f.level == 0), None)
    if own is not None and (rank.wait is None or own.line < rank.wait.line):
        return f"{'' if own.type in own.message else f'{own.type}: '}{own.message[:100]}{after}"
    if rank.wait is not None:
        number = "" if rank.wait.number == UNNUMBERED else f", sequence number {rank.wait.number:,}"
        return f"waited in {rank.wait.operation}{number}{after}"
    if rank.told.finished:
        return f"finished{after}"
    if rank.faults:
        return f"{template_of(rank.faults[0].type)}{after} (a consequence)"
    said = start.claims.get(rank.rank, ())
    told = f" ({said[0].kind})" if said and said[0].kind != "running" else ""
    line, last = rank.told.last
    if line <= rank.told.step_line or not last:  # what it said before goes on to train is not how it ended
        return f"the log ends{' with the record of' + after.removeprefix(' after') if after else ''}{told}"
    return f"the log ends{after}{told}, last line `{template_of(last)[:90]}`"
