"""The job as text: how the ranks ended, collapsed, and the lines that few ranks have, by step and not by clock."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_ranks.logs.endings import endings
from traindx_tools.on_ranks.logs.examine import ManyRanks
from traindx_tools.on_ranks.logs.job import Start, named
from traindx_tools.on_ranks.logs.parting import FEW

MOST_ENDINGS, MOST_LINES = 12, 24
_NUMBER = re.compile(r"(\d{1,18})")




@dataclass(frozen=True)
class Line:
    """Identical lines of several ranks (numbers aside), at the step where the first of them stands."""

    step: float
    ranks: tuple[int, ...]
    count: int
    text: str


def lines_of(start: Start) -> list[Line]:
    """Every line that is no record of metrics, identical ones as one, in the order of steps."""
    ranks: dict[str, list[int]] = defaultdict(list)
    first: dict[str, tuple[float, str]] = {}
    count: dict[str, int] = defaultdict(int)
    texts: dict[str, set[str]] = defaultdict(set)
    for r in start.ranks.values():
        for template, event in r.told.events.items():
            ranks[template].append(r.rank)
            count[template] += event.count
            texts[template].add(event.text)
            step = -1.0 if math.isnan(event.step) else event.step
            if template not in first or step < first[template][0]:
                first[template] = step, event.text
    made = [Line(first[t][0], tuple(ranks[t]), count[t], _one_text(first[t][1], texts[t])) for t in ranks]
    return sorted(made, key=lambda x: (x.step, x.ranks[0], x.text))


def _one_text(first: str, texts: Collection[str]) -> str:
    """One text for lines that differ in whole numbers: each of these from the least to the largest ("node-0..7")."""
    cut = [_NUMBER.split(t) for t in (first, *texts)] if len(texts) > 1 else []
    if not cut or len({len(c) for c in cut}) > 1 or any(c[::2] != cut[0][::2] for c in cut):
        return first
    numbers = [sorted({c[i] for c in cut}, key=int) for i in range(1, len(cut[0]), 2)]
    told = [n[0] if len(n) == 1 else f"{n[0]}..{n[-1]}" for n in numbers]
    return "".join(a + b for a, b in zip(cut[0][::2], [*told, ""], strict=True))


def told(many: ManyRanks, *, every: bool = False) -> Iterator[str]:
    """The report in lines. `every`: all lines of the merged log and not only those of few ranks."""
    job, start = many.job, many.job.last
    size = f"{job.bytes / 1e9:.1f} GB" if job.bytes >= 1e9 else f"{job.bytes / 1e6:.1f} MB"
    world = f" of {start.world:,}" if start.world is not None else ""
    starts = f", start {start.number} of {len(job.starts)}" if len(job.starts) > 1 else ""
    yield f"{len(start.ranks):,} ranks{world}{starts}; {job.files:,} files, {size}, {job.lines:,} lines"
    yield ""
    for finding in many.findings:
        yield f"{finding.severity.value.upper()} {finding.rule} {finding.statement}"
        yield f"  {finding.where.code or finding.source}"
    if not many.findings:
        yield _nothing_odd(start)
    yield ""
    yield "How the ranks ended (identical ones together)"
    found = endings(job)
    for ending in found[:MOST_ENDINGS]:
        yield f"  {ending.ranks}: {ending.how}"
    if len(found) > MOST_ENDINGS:
        yield f"  and {sum(e.count for e in found[MOST_ENDINGS:]):,} ranks in {len(found) - MOST_ENDINGS} more ways"
    yield from _few(start, every)
    yield from (f"note: {n}" for n in job.notes[:MOST_ENDINGS])


def _nothing_odd(start: Start) -> str:
    """Why no rank is named: nothing stopped, or what stopped does not tell them apart."""
    waiting = [r.rank for r in start.ranks.values() if r.wait is not None]
    if waiting:
        return (f"{named(waiting)[:1].upper()}{named(waiting)[1:]} waited in a collective until the timeout, but "
                "nothing tells which rank it waited for: give the logs of all ranks, or dumps of the flight recorder.")
    said = "No rank is odd: no error of its own, no other collective, count, version or value."
    return said if start.troubled else f"{said} Nothing in the logs says that a rank waited, failed or stopped."


def merged(many: ManyRanks) -> Iterator[str]:
    """All lines that are no records, by step, identical ones once with their ranks; records as one line a start."""
    for start in many.job.starts:
        first = [r.told.first_step for r in start.ranks.values() if r.told.records]
        last = [r.step for r in start.ranks.values() if r.told.records]
        span = f", steps {min(first):g} to {max(last):g}" if first else ""
        yield f"start {start.number} of {len(many.job.starts)}: {len(start.ranks):,} ranks{span}"
        yield from _lines(lines_of(start), start)


def _lines(lines: Sequence[Line], start: Start) -> Iterator[str]:
    for line in lines:
        step = "start" if line.step < 0 else f"step {line.step:g}"
        times = f" ({line.count:,} times)" if line.count > len(line.ranks) else ""
        yield f"  {step:>12}  {_ranks(line.ranks, start)}: {line.text[:140]}{times}"


def _few(start: Start, every: bool) -> Iterator[str]:
    lines = lines_of(start)
    shown = lines if every else [x for x in lines if len(x.ranks) <= max(1, FEW * len(start.ranks))]
    if not shown:
        return
    yield ""
    yield "The logs merged by step, identical lines once" if every else "Lines of few ranks, by step"
    yield from _lines(shown if every else shown[-MOST_LINES:], start)


def _ranks(ranks: tuple[int, ...], start: Start) -> str:
    return "all ranks" if len(ranks) == len(start.ranks) and len(ranks) > 1 else named(ranks)
