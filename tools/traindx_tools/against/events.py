"""Events of two runs: which the broken run has and the one that works has not, in the order in which they come."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.events.candidates import Candidate, candidates
from traindx_tools.on_logs.events.collecting import collect
from traindx_tools.on_logs.notebook_source import of_outputs
from traindx_tools.on_logs.readers.live_records import FORMAT as LIVE
from traindx_tools.on_logs.run import Run

MOST_FILES, MOST_VALUES, MOST_TOLD = 8, 64, 12
"""Files of a run that are read, values of the variables of a template that name something, events that are told."""


@dataclass(frozen=True)
class EventDifference:
    """`text`: the event. `count`, `line`, `source`: how often the broken run has it, and where first."""

    text: str
    count: int
    line: int
    source: str

    def statement(self) -> str:
        """One sentence."""
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{self.text} stands {times} in the broken run (first {self.source}:{self.line}) and never in the other"


def event_differences(here: Run, there: Run) -> list[EventDifference]:
    """Templates, and values of variables with few of them, that only the broken run has: the earliest first.

    A value is compared where the other run has its template: what a template alone says is told once. Nothing is told
    where one of the runs has no text that can be read.
    """
    mine, other = _events(here), _events(there)
    if not mine or not other:
        return []
    known = {c.text for _, c in other}
    per_template = Counter((source, c.template) for source, c in mine if c.kind != "template")
    new = {(source, c.template) for source, c in mine if c.kind == "template" and c.text not in known}
    found = [EventDifference(c.text, len(c.lines), int(c.lines[0]), source) for source, c in mine
             if c.text not in known and len(c.lines) and (
                 c.kind == "template" or ((source, c.template) not in new
                                          and per_template[source, c.template] <= MOST_VALUES))]
    once = {d.text: d for d in sorted(found, key=lambda d: -d.line)}
    return sorted(once.values(), key=lambda d: d.line)[:MOST_TOLD]


def _events(run: Run) -> list[tuple[str, Candidate]]:
    return [(path, c) for path in _texts(run) for c in _of_file(path)]


def _texts(run: Run) -> Iterable[str]:
    """The logs of a run. A JSON document has one record and no lines, and our own record tells of its process."""
    own = {a.path for a in run.artifacts if a.format == LIVE}
    return [p for p in dict.fromkeys(s.source for s in run.series)
            if p not in own and not p.endswith(".json") and os.path.isfile(p)][:MOST_FILES]


def _of_file(path: str) -> list[Candidate]:
    log = None
    with suppress(OSError):
        log = collect(of_outputs(Source(path, local=Path(path))))
    return [] if log is None else list(candidates(log, fewest=1))
