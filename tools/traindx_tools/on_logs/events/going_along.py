"""What goes along with the anomalies of a run: they are found first; only a log that has some is passed over again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.each_run import WHOLE
from traindx_tools.on_logs.events.anomalous import AnomalySet, anomaly_sets
from traindx_tools.on_logs.events.associating import Along, associate
from traindx_tools.on_logs.events.candidates import Candidate, candidates
from traindx_tools.on_logs.events.collecting import EventLog, collect
from traindx_tools.on_logs.run import Run

MOST_CANDIDATES = 2_500
"""Templates and values that are compared; beyond, those that occur most seldom are left out."""


def what_goes_along(run: Run, sources: Sequence[Source]) -> tuple[Along, ...]:
    """For each set of anomalies of the run what occurs with it, in the file in which it was logged.

    A file that cannot be read again, or whose records are no lines, tells nothing.
    """
    sets = anomaly_sets(run)
    out: list[Along] = []
    numbered = {a.path for a in run.artifacts if a.format not in WHOLE}
    for name in dict.fromkeys(a.series.source for a in sets if a.series.source in numbered):
        source = next((s for s in sources if s.name == name), None)
        log = None
        with suppress(OSError):
            log = collect(source) if source is not None else None
        every = _candidates(log, source, run) if log is not None and source is not None else []
        for a in sets:
            if a.series.source == name:
                whole = _all_records(a, log, source) if log is not None and source is not None else a
                out.append(associate(whole, every, len(sets)))
    return tuple(out)


def _all_records(anomalies: AnomalySet, log: EventLog, source: Source) -> AnomalySet:
    """The anomalies among all records, where those of a very long log were thinned: lags are counted in them."""
    lines = anomalies.series.line - source.above
    if not anomalies.series.thinned or lines[0] < 1 or lines[-1] > log.lines or (np.diff(lines) < 0).any():
        return anomalies
    return anomalies.among(log.alike(lines) + np.int32(source.above))


def _candidates(log: EventLog, source: Source, run: Run) -> list[Candidate]:
    mine = [s for s in run.series if s.source == source.name and s.rank is None]
    found = list(candidates(log, mine))
    if len(found) > MOST_CANDIDATES:
        found = [found[i] for i in np.sort(np.argsort([-len(c.lines) for c in found], kind="stable")[:MOST_CANDIDATES])]
    if not source.above:
        return found
    return [c if c.kind == "column" else replace(c, lines=c.lines + source.above) for c in found]
