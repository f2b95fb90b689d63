"""A rank says nothing, or falls silent long before the others.

Most jobs log on rank 0 alone, and the log of one machine holds the ranks of that machine: neither is a missing rank.
But where several ranks write, one number left out of the row, or one rank whose last step lies far behind, is the one
that hangs, died or never started; the others wait for it in the next collective.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

BEHIND = 2

RULE = Rule(
    id="L702",
    name="rank-missing",
    title="A rank is missing or has fallen silent",
    severity=Severity.HIGH,
    sees="Which ranks write at all, against the world size, and the last step that each of them logs.",
    matters="All other ranks wait for it, usually until a collective times out.",
    alike=("Logging on rank 0 only.", "The log of one machine of several: a whole block of ranks.",
           "A rank whose file is there and could not be read.",
           "Ranks that write every n-th step."),
    confirm=("Look at the log, exit code and host of that rank first; then py-spy dump --pid on it.",),
    thresholds={
        "behind": Threshold(BEHIND, "logging intervals behind the others", "ranks flush their output at other times"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """A missing rank, else one that has fallen silent."""
    seen = _seen(run)
    if len(seen) < 2:
        return
    size = run.world_size
    unread = run.unread_ranks
    missing = sorted(set(range(max(seen) + 1)) - seen - unread)
    beyond = size - max(seen) - 1 if size is not None else 0
    if size is not None and not missing and not unread and max(seen) + 1 < size and not _one_machine(len(seen), size):
        missing = list(range(max(seen) + 1, min(size, max(seen) + 65)))
    if missing and min(seen) == 0 and len(missing) < len(seen):
        yield _missing(run, seen, missing, size, beyond if max(missing) < max(seen) else 0)
        return
    yield from _silent(run)


def _seen(run: Run) -> set[int]:
    return {r for r in (*(s.rank for s in run.series if len(s)), *(n.rank for n in run.notes),
                        *(e.rank for e in run.errors)) if r is not None and 0 <= r < 1_000_000}


def _one_machine(count: int, size: int) -> bool:
    """Whether these may be all ranks of one machine of several."""
    return size % count == 0


def _missing(run: Run, seen: set[int], missing: list[int], size: int | None, beyond: int) -> Finding:
    """`beyond`: how many ranks after the last that writes are silent too; with them none is singled out."""
    ranked = [*((x.source, x.rank) for x in run.series), *((x.source, x.rank) for x in run.notes),
              *((x.source, x.rank) for x in run.errors)]
    source = next(name for name, rank in ranked if rank is not None)
    of = f" of {size}" if size is not None else ""
    listed = ", ".join(map(str, missing[:8]))
    last = max(seen)
    also = f"; nor {'does rank' if beyond == 1 else 'do ranks'} {last + 1}" if beyond > 0 else ""
    also += f" to {last + beyond}" if beyond > 1 else ""
    return RULE.finding(
        f"rank {listed} writes nothing while {len(seen)}{of} ranks do{also}", Location(file=source, rank=missing[0]),
        source, bearing=Bearing.COMPANION if beyond > 0 else Bearing.SIGN,
        severity=Severity.LOW if beyond > 0 else None,
        measured={"kind": "missing", "ranks": tuple(missing[:64]), "seen": len(seen), "world_size": size,
                  "beyond": beyond})


def _silent(run: Run) -> Iterator[Finding]:
    """A rank whose last record of a metric lies well before the last one of the others."""
    by_name: dict[tuple[str, str], dict[int, tuple[float, float]]] = defaultdict(dict)
    for s in run.series:
        if s.rank is not None and len(s) >= 2 and s.unit != "line":
            moves = np.diff(np.clip(s.position, -1e150, 1e150))
            interval = float(np.median(moves[moves > 0])) if (moves > 0).any() else 0.0
            by_name[s.name, s.group][s.rank] = (float(s.position.max()), interval)
    for (name, group), ranks in sorted(by_name.items()):
        if len(ranks) < 2:
            continue
        ends = {r: end for r, (end, _) in ranks.items()}
        furthest, interval = max(ends.values()), max(i for _, i in ranks.values())
        behind = sorted(r for r, end in ends.items() if interval > 0 and furthest - end > BEHIND * interval)
        if not behind or len(behind) > len(ranks) / 2:
            continue
        s = next(s for s in run.series if (s.name, s.group, s.rank) == (name, group, behind[0]))
        yield RULE.finding(
            f"rank {behind[0]} logs {name} last at {s.unit} {ends[behind[0]]:g}, the others go on to {furthest:g}",
            s.at(-1), s.source, bearing=Bearing.SIGN,
            measured={"kind": "silent", "ranks": tuple(behind), "position": ends[behind[0]], "furthest": furthest,
                      "world_size": run.world_size, "seen": len(ranks)})
        return
