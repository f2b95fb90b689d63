"""Where the sequences of collectives part: another operation, another shape, or a rank that never came.

The rank that a watchdog names first is one that waits. What tells the odd one is the sequence number: the ranks that
wait there are many, the rank that is not among them, or is there with another operation, is the one to look at. Of two
ranks there is no majority, and none is needed: one reports its wait, and the other, which came less far or was busy
with something else, never reached it.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.on_ranks.logs.claims import ABSENT, RUNNING
from traindx_tools.on_ranks.logs.job import Rank, Start
from traindx_tools.on_ranks.logs.told import Operation
from traindx_tools.on_ranks.logs.words import UNNUMBERED, template_of

FEW = 0.25
"""Share of the ranks that may be odd; more are another stage or group of a parallel model."""
CUT = 0.05
"""Share of the steps by which a log that ends before another odd rank's has lost its end."""
AGREED = 3
"""Collectives before it that the odd ranks called as all others: those of another stage never agreed."""
_ANY_SHAPE = ("ALLTOALL", "GATHER", "SCATTER", "SEND", "RECV", "ALLGATHERV")
_DATA = re.compile(r"(?i)fetch|load(?:ing|er)? |loader|read(?:ing)? |shard|waiting for (?:data|batch)|data ?wait"
                   r"|prefetch"
                   r"|open(?:ing|ed) |download|next batch|_next_data|decod")
_LEFT = re.compile(r"(?i)\beval|validat|epoch \S+ (?:is )?(?:done|end|finish|complete)|end of epoch|checkpoint"
                   r"|\bsav(?:e|ing)")


@dataclass(frozen=True)
class Parting:
    """The odd ranks. `kind`: "operation", "shape", "missing", "data-loading", "left-loop", "met-another"."""

    kind: str
    ranks: tuple[int, ...]
    group: str
    number: int | None
    usual: Operation | None
    """What most ranks called, or wait in."""
    other: Operation | None
    """What the odd ranks called instead; None where they called nothing."""
    agreeing: int
    """How many ranks called, or wait in, the usual one."""


def parted(start: Start) -> Parting | None:
    """The first place where few ranks leave what all others call; None where there is none, or nothing stopped."""
    if not start.troubled and not any(c.kind == ABSENT for said in start.claims.values() for c in said):
        return None
    told = _by_fingerprints(start) or _by_traces(start) or _by_waits(start) or _by_absence(start)
    return told or _by_mismatch(start)


def _few(odd: int, every: int) -> bool:
    return odd > 0 and (odd <= FEW * every or (odd == 1 and every > 2))


def _odd(called: Mapping[int, Operation]) -> tuple[Operation, tuple[int, ...]] | None:
    """The usual operation and the few ranks with another one."""
    counts = Counter(called.values())
    usual, often = counts.most_common(1)[0]
    odd = tuple(r for r, o in called.items() if o != usual)
    return (usual, odd) if _few(len(odd), len(called)) and often > 1 else None


def _kind(usual: Operation, other: Operation) -> str | None:
    if usual.name != other.name:
        return "operation"
    return None if usual.name in _ANY_SHAPE or not usual.shape or not other.shape else "shape"


def _by_fingerprints(start: Start) -> Parting | None:
    told: dict[int, dict[int, Operation]] = defaultdict(dict)
    for rank, said in start.claims.items():
        for claim in said:
            if claim.kind == RUNNING:
                place, name, shape = claim.text.split("|", 2)
                told[int(place)].setdefault(rank, Operation(name, shape))
    for number in sorted(told):
        if (found := _odd(told[number])) is not None and (kind := _kind(found[0], told[number][found[1][0]])):
            return Parting(kind, found[1], "", number, found[0], told[number][found[1][0]],
                           len(told[number]) - len(found[1]))
    return None


def _by_traces(start: Start) -> Parting | None:
    groups: dict[str, dict[int, dict[int, Operation]]] = defaultdict(dict)
    for r in start.ranks.values():
        for at, (name, operations) in enumerate(r.told.operations.items()):
            key = f"#{at}" if name.startswith("0x") else name  # addresses differ: the n-th communicator of each process
            groups[key][r.rank] = operations.told()
    for group, by_rank in groups.items():
        if len(by_rank) >= 3 and (found := _first_difference(by_rank, group)) is not None:
            return found
    return None


def _first_difference(by_rank: Mapping[int, Mapping[int, Operation]], group: str) -> Parting | None:
    columns: dict[int, dict[int, Operation]] = defaultdict(dict)
    for rank, told in by_rank.items():
        for number, operation in told.items():
            columns[number][rank] = operation
    agreed: Counter[int] = Counter()
    for number in sorted(columns):
        called = columns[number]
        if len(called) < max(3, len(by_rank) // 2):
            continue
        found = _odd(called)
        if found is None:
            agreed.update(list(called))
            continue
        usual, odd = found
        kind = _kind(usual, called[odd[0]])
        if kind is not None and all(agreed[r] >= AGREED for r in odd):
            return Parting(kind, odd, group, number, usual, called[odd[0]], len(called) - len(odd))
        agreed.update(r for r in called if r not in odd)
    return None


def _by_waits(start: Start) -> Parting | None:
    waiting = _main_group(start)
    if len(waiting) < 2:
        return None
    number = Counter(w.number for r in waiting.values() if (w := r.wait)).most_common(1)[0][0]
    there = {k: r.wait.operation for k, r in waiting.items() if r.wait is not None and r.wait.number == number}
    if (found := _odd(there)) is not None and (kind := _kind(found[0], there[found[1][0]])) is not None:
        return Parting(kind, found[1], "", number, found[0], there[found[1][0]], len(there) - len(found[1]))
    usual = Counter(there.values()).most_common(1)[0][0]
    behind = tuple(k for k, r in waiting.items() if (w := r.wait) and (
        w.number < number or (w.enqueued is not None and 0 <= w.enqueued < number)))
    if _few(len(behind), len(waiting)):
        return Parting("missing", behind, "", number, usual, None, len(there))
    return None


def _main_group(start: Start) -> dict[int, Rank]:
    """The ranks that wait in the group in which most do."""
    groups: dict[str, dict[int, Rank]] = defaultdict(dict)
    for r in start.ranks.values():
        if r.wait is not None:
            groups[r.wait.group][r.rank] = r
    return max(groups.values(), key=len, default={})


def _by_absence(start: Start) -> Parting | None:
    waiting = _main_group(start)
    usual = Counter((w.number, w.operation) for r in waiting.values() if (w := r.wait)).most_common(1)
    number, operation = usual[0][0] if usual else (None, None)
    accused = tuple(sorted(r for r, said in start.claims.items()
                           if r not in waiting and any(c.kind == ABSENT for c in said)))
    if _few(len(accused), len(start.ranks)):
        return _classed(start, accused, number, operation, len(waiting))
    absent = [r for r in start.ranks.values() if r.rank not in waiting and not r.faults and not r.told.finished]
    if _is_pair(start) and len(waiting) == len(absent) == 1:
        there = next(iter(waiting.values()))
        never = accused == (absent[0].rank,) or absent[0].step < there.step or _said_after(absent[0]) != ""
        return _classed(start, (absent[0].rank,), number, operation, 1) if never else None
    if not _few(len(absent), len(start.ranks)) or len(waiting) < 0.5 * len(start.ranks):
        return None
    common = Counter(map(_said_after, waiting.values())).most_common(1)[0][0]
    odd = [r for r in absent if r.step < start.usual_step or _said_after(r) not in ("", common)]
    return _classed(start, tuple(r.rank for r in _furthest(odd or absent)), number, operation, len(waiting))


def _furthest(absent: Sequence[Rank]) -> list[Rank]:
    """Without those whose logs end long before: the others went on with their collectives, so a log is cut, no rank."""
    last = max((r.step for r in absent if not math.isnan(r.step)), default=math.nan)
    return [r for r in absent if not last - r.step > max(CUT * last, 1)]


def _by_mismatch(start: Start) -> Parting | None:
    """Where a collective met another one of a peer: the few ranks that had said something else than all others last."""
    if start.mismatch is None:
        return None
    said = {r.rank: _said_after(r) for r in start.ranks.values() if not r.told.finished}
    common = Counter(said.values()).most_common(1)[0][0] if said else ""
    odd = tuple(k for k, last in said.items() if last not in ("", common))
    if not _few(len(odd), len(said)):
        return None
    found = _classed(start, odd, None, None, len(said) - len(odd))
    return replace(found, kind=found.kind if found.kind == "left-loop" else "met-another")


def _is_pair(start: Start) -> bool:
    """Whether the job has two ranks, both read: the one that waits and the one that never came need no majority."""
    return len(start.ranks) == 2 and start.world in (None, 2)


def _said_after(rank: Rank) -> str:
    """The template of its last line, "" where that is its last record: logs that lost their ends say nothing after
    it."""
    line, text = rank.told.last
    return template_of(text) if line > rank.told.step_line else ""


def _classed(start: Start, ranks: tuple[int, ...], number: int | None, usual: Operation | None,
             agreeing: int) -> Parting:
    """What the ranks that did not come were doing, by their last line or stack."""
    told = [r for k in ranks if (r := start.ranks.get(k)) is not None]
    last = told[0].told.stack or told[0].told.last[1] if told else ""
    if told and told[0].told.last[0] < told[0].told.step_line and not told[0].told.stack:
        last = ""
    number = None if number == UNNUMBERED else number
    kind = "data-loading" if _DATA.search(last) else "left-loop" if _LEFT.search(last) else "missing"
    return Parting(kind, ranks, "", number, usual, None, agreeing)


def waiting_words(start: Start, found: Parting) -> str:
    """ "63 ranks wait", of one its name: "rank 0 waits"."""
    if found.agreeing != 1:
        return f"{found.agreeing:,} ranks wait"
    other = next((r.rank for r in start.ranks.values() if r.rank not in found.ranks and r.wait is not None), None)
    return "one rank waits" if other is None else f"rank {other} waits"
