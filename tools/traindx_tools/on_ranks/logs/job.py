"""All files of a job as one value: the ranks of each start, their hosts, and what launchers say of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from traindx_tools.finding import Location
from traindx_tools.on_ranks.logs.claims import MISMATCH, numbers
from traindx_tools.on_ranks.logs.numbering import numbered
from traindx_tools.on_ranks.logs.told import Attempt, Claim, Fault, FileTold, Stream, Wait

SURVIVED = 5
"""So many records after an error, and it was caught."""
FINISHED = 0.5
"""Share of the ranks that say that training is done, from which on the job is over and what comes is its teardown."""


@dataclass(frozen=True, eq=False)
class Rank:
    """One rank in one start of the job."""

    rank: int
    host: str
    source: str
    told: Attempt

    def at(self, line: int, quote: str = "", step: float = math.nan) -> Location:
        """A place in its log."""
        return Location(file=self.source, line=line or None, step=None if math.isnan(step) else step, rank=self.rank,
                        quote=quote or None)

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """Errors that were not survived."""
        return tuple(f for f in self.told.faults if self.told.records - f.records < SURVIVED)

    @cached_property
    def wait(self) -> Wait | None:
        """The collective in which it waited until a timeout."""
        return self.told.waits[0] if self.told.waits else None

    @property
    def step(self) -> float:
        """The last step that it recorded, NaN for none."""
        return self.told.step


@dataclass(frozen=True, eq=False)
class Start:
    """One start of the job: its ranks, ascending."""

    number: int
    ranks: Mapping[int, Rank]
    claims: Mapping[int, tuple[Claim, ...]] = field(default_factory=dict)
    """What launchers and other ranks say of a rank."""
    lost: Mapping[str, Claim] = field(default_factory=dict)
    """Hosts that a scheduler says are gone."""
    mismatch: Claim | None = None
    """Where a process says that its collective met another one of a peer."""

    @cached_property
    def world(self) -> int | None:
        """What most ranks say that it is."""
        told = Counter(r.told.world for r in self.ranks.values() if r.told.world is not None)
        return told.most_common(1)[0][0] if told else None

    @cached_property
    def finished(self) -> bool:
        """Whether the ranks came to the end of training."""
        done = sum(r.told.finished for r in self.ranks.values())
        return done >= max(1, FINISHED * len(self.ranks)) or (
            0 in self.ranks and self.ranks[0].told.finished and not any(r.wait for r in self.ranks.values()))

    @cached_property
    def usual_step(self) -> float:
        """The last step of most ranks; NaN where fewer than two record any."""
        steps = Counter(r.step for r in self.ranks.values() if not math.isnan(r.step))
        return steps.most_common(1)[0][0] if steps.total() > 1 else math.nan

    @cached_property
    def troubled(self) -> bool:
        """Whether some rank waited until a timeout, met an error that it did not survive, or is said to be gone."""
        return (bool(self.lost) or self.mismatch is not None
                or any(r.wait is not None or r.faults for r in self.ranks.values()))  # fmt: skip

    def of_host(self, host: str) -> list[int]:
        """The ranks of a host."""
        return [r.rank for r in self.ranks.values() if r.host == host]


@dataclass(frozen=True, eq=False)
class Job:
    """Every start of the job in their order, the last one last."""

    starts: tuple[Start, ...]
    files: int
    bytes: int
    lines: int
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    prefixed: bool = False
    """Whether lines of several ranks stand in turn in one file, behind a launcher's prefix (srun, kubectl)."""

    @property
    def last(self) -> Start:
        return self.starts[-1]


def ranges(ranks: Iterable[int], most: int = 6) -> str:
    """Ranks as a person writes them: "0-36, 38-63"."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    told = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs[:most]]
    return ", ".join(told) + (f" and {sum(b - a + 1 for a, b in runs[most:]):,} more" if len(runs) > most else "")


def named(ranks: Sequence[int], most: int = 6) -> str:
    """ "rank 3" or "ranks 3, 5-8"."""
    return f"rank{'' if len(set(ranks)) == 1 else 's'} {ranges(ranks, most)}"


def job_of(files: Sequence[FileTold]) -> Job | None:
    """The job that these files tell of, or None where they name fewer than two ranks."""
    numbered(files)
    streams: dict[int, list[Stream]] = defaultdict(list)
    for file in files:
        for stream in file.streams:
            if stream.rank is not None:
                streams[stream.rank].append(stream)
    if len(streams) < 2:
        return None
    starts = _starts({r: _attempts(several) for r, several in sorted(streams.items())})
    claims = [c for f in files for c in f.claims]
    at = next((i for i in range(len(starts) - 1, -1, -1) if starts[i].troubled), len(starts) - 1)
    starts[at] = _claimed(starts[at], claims)
    used = dict.fromkeys(s.source for several in streams.values() for s in several)
    notes = tuple(f"{f.name}: {f.note}" for f in files if f.note)
    return Job(tuple(starts), len(files), sum(f.bytes for f in files), sum(f.lines for f in files), notes, tuple(used),
               any(f.form and len(f.streams) > 1 for f in files))


# --- the starts of each rank

Told = tuple[Stream, Attempt]


def _attempts(streams: Sequence[Stream]) -> list[Rank]:
    """The starts of one rank: standard output and error of one start are one."""
    every: list[Told] = [(s, a) for s in streams for a in s.attempts]
    every.sort(key=lambda t: (t[1].number if t[1].number is not None else 0, t[0].source, t[1].line))
    joined: list[Told] = []
    for stream, attempt in every:
        if joined and _same(joined[-1], (stream, attempt)):
            joined[-1] = _both(joined[-1], (stream, attempt))
        else:
            joined.append((stream, attempt))
    if all(a.number is None for _, a in joined):
        joined.sort(key=lambda t: t[1].first_step if t[1].records else math.inf)
    host = next((s.host for s in streams if s.host), "")
    return [Rank(s.rank or 0, s.host or host, s.source, a) for s, a in joined]


def _same(one: Told, other: Told) -> bool:
    (first, a), (second, b) = one, other
    if a.number is not None or b.number is not None:
        return a.number == b.number
    return first is not second and not (a.records and b.records)


def _both(one: Told, other: Told) -> Told:
    """One start of what its two files tell; the one with records names the place."""
    (stream, a), (second, b) = (one, other) if one[1].records >= other[1].records else (other, one)
    b.faults = [_placed(f, a, same_file=stream.source == second.source) for f in b.faults]
    a.waits += b.waits
    a.faults += b.faults
    for mine, theirs in ((a.series, b.series), (a.bad, b.bad), (a.counts, b.counts), (a.operations, b.operations),
                         (a.settings, b.settings), (a.events, b.events)):
        _filled(mine, theirs)
    a.world = a.world if a.world is not None else b.world
    a.finished, a.resumed = a.finished or b.finished, a.resumed or b.resumed
    if not a.last[1]:
        a.last = b.last
    if a.faults and second.source != stream.source and not a.records:
        stream = second
    return stream, a


def _placed(fault: Fault, within: Attempt, *, same_file: bool) -> Fault:
    """A fault of a file or prefix without records, among the records of the other one; at their end where none
    tells."""
    before = same_file and fault.line < within.step_line
    step = fault.step if not math.isnan(fault.step) else within.step
    return replace(fault, step=step, records=0 if before else within.records)


def _filled(mine: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Adds what only the other one has."""
    for key, value in other.items():
        mine.setdefault(key, value)


def _starts(ranks: Mapping[int, Sequence[Rank]]) -> list[Start]:
    most = max(len(a) for a in ranks.values())
    if most == 1:
        return [Start(1, {r: a[0] for r, a in ranks.items()})]
    full = [a for a in ranks.values() if len(a) == most]
    marks = [(Counter(a[k].told.world for a in full).most_common(1)[0][0],
              sorted(a[k].told.first_step for a in full)[len(full) // 2]) for k in range(most)]
    starts: list[dict[int, Rank]] = [{} for _ in range(most)]
    for rank, attempts in ranks.items():
        at = 0
        for attempt in attempts:
            left = range(at, most)
            if not left:
                break
            k = at if len(attempts) == most else min(left, key=lambda k: _distance(attempt, marks[k], k))
            starts[k][rank] = attempt
            at = k + 1
    return [Start(i + 1, dict(sorted(s.items()))) for i, s in enumerate(starts) if s]


def _distance(attempt: Rank, mark: tuple[int | None, float], k: int) -> tuple[bool, float, int]:
    apart = abs(attempt.told.first_step - mark[1])
    return attempt.told.world != mark[0], apart if math.isfinite(apart) else math.inf, k


# --- what others say of a rank

def _claimed(start: Start, claims: Sequence[Claim]) -> Start:
    """The start with each claim at the ranks that it is about."""
    about: dict[int, list[Claim]] = defaultdict(list)
    lost: dict[str, Claim] = {}
    places: dict[str, list[int]] = defaultdict(list)
    for r in start.ranks.values():
        places[r.host].append(r.rank)
    for claim in claims:
        host, slash, local = claim.about.partition("/")
        if not slash:
            for rank in numbers(claim.about):
                about[rank].append(claim)
        elif not local:
            if claim.kind == "host-lost":
                lost.setdefault(host, claim)
            for rank in _of_host(places, host):
                about[rank].append(claim)
        elif local.isdigit() and (ranks := sorted(_of_host(places, host))) and int(local) < len(ranks):
            about[ranks[int(local)]].append(claim)
    return Start(start.number, start.ranks, {r: tuple(c) for r, c in about.items()}, lost,
                 next((c for c in claims if c.kind == MISMATCH), None))


def _of_host(places: Mapping[str, Sequence[int]], host: str) -> Sequence[int]:
    """The ranks of a host whose name may be given with its domain or without."""
    return next((r for h, r in places.items() if h and host and h.split(".")[0] == host.split(".")[0]), ())
