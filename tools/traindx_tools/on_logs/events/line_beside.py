"""Lines that stand where a run goes wrong and hardly anywhere else: a warning that a cache is full, another file.

Of a log of N lines between its first and last record, R are of a template that comes once or twice. That one of them
stands among the w lines around a given place has the chance 1 - (1 - w / N)^R: below `CHANCE` it is told. A warning
says by itself that something is not as it should be, and is compared with the other warnings alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.each_run import WHOLE
from traindx_tools.on_logs.events.collecting import EventLog, collect
from traindx_tools.on_logs.readers.lines import ESCAPE
from traindx_tools.on_logs.run import Run, Series

BEFORE, AFTER = 2, 1
"""Records before and after the trouble between which its lines are looked at: a warning may follow its own effect."""
SELDOM = 2
"""Occurrences of a template up to which it is an event of a place."""
CHANCE, OF_WARNINGS = 0.05, 0.2
"""Chances up to which a line, or a warning, is told."""
MOST, LONGEST_TEXT = 2, 200
MOST_LINES = 2_000_000
"""Lines of a log up to which it is looked through."""
_WARNS = re.compile(r"\b(?:WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b|\bwarning:", re.IGNORECASE)
_WHEN = re.compile(r"^\W{0,2}\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d\S*\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Beside:
    """A line beside a trouble. `chance`: that such a line stands there for no reason."""

    text: str
    line: int
    source: str
    warns: bool
    chance: float


def lines_beside(run: Run, sources: Sequence[Source], series: Series, at: int) -> Iterator[Beside]:
    """The lines that are told of the record `at` of a series, warnings first; none where the file has no lines."""
    numbered = {a.path for a in run.artifacts if a.format not in WHOLE}
    source = next((s for s in sources if s.name == series.source), None)
    if source is None or source.name not in numbered or series.thinned:
        return
    log = None
    with suppress(OSError):
        log = collect(source)
    if log is None or not 0 < log.lines <= MOST_LINES:
        return
    first, last = int(series.line.min()) - source.above, int(series.line.max()) - source.above
    ends = max(0, at - BEFORE), min(len(series) - 1, at + AFTER)
    around = [int(series.line[i]) - source.above for i in ends]
    lines = _seldom(log, first, last, _told_otherwise(run, source, series))
    texts = texts_of(source, lines)
    warns = np.array([_WARNS.search(texts.get(n, "")) is not None for n in lines.tolist()], bool)
    width, length = float(around[1] - around[0] + 1), max(1.0, last - first + 1)
    found = []
    for mine, warning in ((lines[warns], True), (lines[~warns], False)):
        chance = 1.0 - (1.0 - min(1.0, width / length)) ** len(mine)
        if chance <= (OF_WARNINGS if warning else CHANCE):
            here = mine[(mine >= around[0]) & (mine <= around[1])].tolist()
            found += [Beside(t, n + source.above, source.name, warning, chance) for n in here if (t := texts.get(n))]
    yield from found[:MOST]


def texts_of(source: Source, lines: NDArray[np.int64]) -> dict[int, str]:
    """The lines of these numbers as they are shown, with the level in front."""
    wanted, found = set(lines.tolist()), {}
    with suppress(OSError), source.text() as stream:
        for number, line in enumerate(stream, 1):
            if number in wanted:
                found[number] = _shown(line)
    return found


def _told_otherwise(run: Run, source: Source, series: Series) -> set[int]:
    """The lines that hold values: what is seldom about them is their numbers; and, of the loss, resumes (L207)."""
    lines = {int(n) for s in run.series if s.source == source.name for n in s.line}
    if series is main_loss(run):
        lines |= {n.line for n in run.notes if n.kind == "resume" and n.source == source.name}
    return {n - source.above for n in lines}


def _seldom(log: EventLog, first: int, last: int, records: set[int]) -> NDArray[np.int64]:
    """Lines, between two of them, of templates that come `SELDOM` times and less in the whole log."""
    ids = log.of_masks().astype(np.int64)
    known = np.flatnonzero(ids < len(log.masks))
    of_template = np.array([m.template for m in log.masks], np.int64)
    counts = np.bincount(of_template[ids[known]], minlength=len(log.templates.found))
    few = known[counts[of_template[ids[known]]] <= SELDOM]
    inside = few[(few + 1 > first) & (few + 1 < last)]
    return np.array([i + 1 for i in inside.tolist() if i + 1 not in records], np.int64)


def _shown(line: bytes) -> str:
    """A line without its time, where a prefix of a logger stands in front."""
    text = _CONTROL.sub(" ", ESCAPE.sub("", line[:2 * LONGEST_TEXT].decode("utf-8", "replace")))
    return " ".join(_WHEN.sub("", text).split())[:LONGEST_TEXT]
