"""Events of two runs: which the broken run has and the one that works has not, in the order in which they come."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from traindx_tools.against.metrics import MetricDifference, longest_by_name
from traindx_tools.on_logs.artifacts import Source, told_as
from traindx_tools.on_logs.events.candidates import Candidate, candidates
from traindx_tools.on_logs.events.collecting import collect
from traindx_tools.on_logs.events.line_beside import texts_of
from traindx_tools.on_logs.notebook_source import of_outputs
from traindx_tools.on_logs.readers.live_records import FORMAT as LIVE
from traindx_tools.on_logs.run import Run

MOST_FILES, MOST_VALUES, MOST_TOLD = 8, 64, 12
"""Files of a run that are read, values of the variables of a template that name something, events that are told."""
NEAR = 20
"""Records ahead of the place where two runs part within which an event is told with it."""
RECORDS = 0.9
"""Share of the lines of a template that hold values of a series, from which it is no event but the record itself."""
REPEATED = 3
TABLES = frozenset({"csv", "tsv", "jsonl", "parquet"})
"""Formats whose every line is a row."""
_WRITTEN = re.compile(r"[-+]?\*(?:[eE][-+]?\*)?")


@dataclass(frozen=True)
class EventDifference:
    """`text`: the event. `count`, `line`, `source`: how often one run has it, and where first.

    `said`: the line itself, where it stands once. `ahead`: how many records of the metric that parts first come between
    it and the place where that parts (0: in the same record); None where it comes behind, or no metric parts.
    `here`: whether the broken run has it, else the one that works.
    """

    text: str
    count: int
    line: int
    source: str
    said: str = ""
    ahead: int | None = None
    here: bool = True

    def statement(self) -> str:
        """One sentence."""
        times = "once" if self.count == 1 else f"{self.count} times"
        text = f"`{self.said}`" if self.said else self.text
        run = "the broken run" if self.here else "the run that works"
        return f"{text} stands {times} in {run} (first {self.source}:{self.line}) and never in the other"

    def beside(self) -> str:
        """The same, told from where the metric parts."""
        at = "in the record in which it parts" if self.ahead == 0 else (
            f"{self.ahead} record{'s' if self.ahead != 1 else ''} before it parts")
        return f"{at}: {self.statement()}"


@dataclass(frozen=True, eq=False)
class _Event:
    """A candidate of one file. `record`: whether its lines are records of values, and so no event by themselves."""

    source: str
    of: Candidate
    record: bool

    @property
    def tells(self) -> bool:
        """Whether it is an event, or a value that records have again and again (a host), beside their numbers."""
        return not self.record or (self.of.kind != "template" and len(self.of.lines) >= REPEATED)


def _not_in(mine: Sequence[_Event], other: Sequence[_Event]) -> list[EventDifference]:
    """Templates, and values of variables with few of them, that the other has not: the earliest first."""
    known = {_key(e.of.text) for e in other}
    only = [e for e in mine if _key(e.of.text) not in known]
    per_template = Counter((e.source, e.of.template) for e in mine if e.of.kind != "template")
    new = {(e.source, e.of.template) for e in only if e.of.kind == "template"}
    found = [EventDifference(e.of.text, len(e.of.lines), int(e.of.lines[0]), e.source) for e in only if e.tells and (
        e.of.kind == "template" or ((e.source, e.of.template) not in new
                                    and per_template[e.source, e.of.template] <= MOST_VALUES))]
    once = {d.text: d for d in sorted(found, key=lambda d: -d.line)}
    return sorted(once.values(), key=lambda d: d.line)


def event_differences(here: Run, there: Run, parting: MetricDifference | None = None) -> list[EventDifference]:
    """What only one run says: of the broken one the earliest first, then of the one that works.

    A value is compared where the other run has its template: what a template alone says is told once. What the run
    that works says behind the end of the other is no difference. Nothing is told where one of the runs has no text that
    can be read.
    """
    mine, other = _events(here), _events(there)
    if not mine or not other:
        return []
    found = [_placed(d, here, parting) for d in _not_in(mine, other)]
    near = [d for d in found if d.ahead is not None and d.ahead <= NEAR]
    told = sorted({d.text: d for d in [*near[-MOST_TOLD // 2:], *found][:MOST_TOLD]}.values(), key=lambda d: d.line)
    until = _end_in(there, here)
    lacking = [replace(d, here=False) for d in _not_in(other, mine) if until is None or d.line <= until]
    return _with_lines([*told, *lacking[:MOST_TOLD // 2]])


def nearest(events: Sequence[EventDifference]) -> EventDifference | None:
    """The last that only the broken run says before its first metric parts, at most `NEAR` records ahead of that.

    Seldom lines before frequent ones: what comes all the time stands near every place.
    """
    near = [d for d in events if d.here and d.ahead is not None and d.ahead <= NEAR]
    return min(near, key=lambda d: (d.ahead, d.count), default=None)


def _placed(found: EventDifference, here: Run, parting: MetricDifference | None) -> EventDifference:
    """With its distance to the place where the metric parts."""
    series = longest_by_name(here).get(parting.name) if parting is not None and parting.step is not None else None
    if parting is None or series is None or series.source != found.source or series.unit != parting.unit:
        return found
    at = int(np.argmin(np.abs(series.position - (parting.step or 0.0))))
    record = int(np.searchsorted(np.maximum.accumulate(series.line), found.line))
    return replace(found, ahead=at - record) if record <= at else found


def _end_in(there: Run, here: Run) -> int | None:
    """The line of the run that works at which the broken one is at its end; None where they count nothing in common."""
    mine, other = longest_by_name(here), longest_by_name(there)
    shared = [(s, other[name]) for name, s in mine.items() if name in other and s.unit == other[name].unit == "step"]
    if not shared:
        return None
    a, b = max(shared, key=lambda pair: len(pair[1]))
    before = np.flatnonzero(b.position <= float(np.nanmax(a.position)))
    return int(b.line[before[-1]]) if len(before) else 0


def _with_lines(found: Sequence[EventDifference]) -> list[EventDifference]:
    """With the line itself where an event stands once: its numbers are what a template leaves open."""
    texts: dict[tuple[str, int], str] = {}
    for path in dict.fromkeys(d.source for d in found):
        lines = {d.line for d in found if d.source == path and d.count == 1}
        if lines:
            of_file = texts_of(of_outputs(Source(path, local=Path(path))), np.array(sorted(lines), np.int64))
            texts.update({(path, n): text for n, text in of_file.items()})
    return [replace(d, said=texts.get((d.source, d.line), "")) if d.count == 1 else d for d in found]


def _key(text: str) -> str:
    """A text in which a number is a number, however it is written."""
    return _WRITTEN.sub("*", text)


def _events(run: Run) -> list[_Event]:
    tables = _of_format(run, TABLES)
    found = []
    for path in _texts(run):
        records = np.unique(np.concatenate([s.line for s in run.series if s.source == path]))
        for c in _of_file(path):
            if len(c.lines) and not (path in tables and c.lines[-1] < records[0]):  # the names of its columns
                found.append(_Event(path, c, float(np.isin(c.lines, records).mean()) >= RECORDS))
    return found


def _texts(run: Run) -> Iterable[str]:
    """The logs of a run. A JSON document has one record and no lines, and our own record tells of its process."""
    own = _of_format(run, frozenset({LIVE}))
    return [p for p in dict.fromkeys(s.source for s in run.series)
            if p not in own and not p.endswith(".json") and os.path.isfile(p)][:MOST_FILES]


def _of_format(run: Run, formats: frozenset[str]) -> set[str]:
    """The files of some formats."""
    told = [a.path for a in run.artifacts if a.format in formats]
    return {s.source for s in run.series if any(told_as(s.source, t) for t in told)}


def _of_file(path: str) -> list[Candidate]:
    log = None
    with suppress(OSError):
        log = collect(of_outputs(Source(path, local=Path(path))))
    return [] if log is None else list(candidates(log, fewest=1))
