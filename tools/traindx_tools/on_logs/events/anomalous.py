"""The anomalies of a run as sets of like ones, each told once: what is asked of the events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traindx_tools.on_logs.anomalies import Anomaly, Kind, anomalies_of
from traindx_tools.on_logs.curves.pauses import between_records, pauses_of
from traindx_tools.on_logs.events.collecting import Lines
from traindx_tools.on_logs.events.slow import RATES, rises, slow_records
from traindx_tools.on_logs.run import Ints, Run, Series

FEWEST = 5
"""Anomalies of one kind from which it is asked what they have in common."""
MOST_SERIES, MOST_SETS, MOST_ANOMALIES = 60, 6, 200
ASKED = {Kind.SPIKE: "spikes", Kind.STEP: "level shifts", Kind.IMPOSSIBLE: "impossible values"}
"""Kinds that stand at definite places."""
SAME = 0.6
"""Share of anomalies at the same places from which two series show the same thing."""
NEAR = 2
"""Records between anomalies at the same place."""
MORE = 1.25
"""Times as many slow records as spikes from which the spikes are only some of them."""
BETWEEN, PAUSE = "time between records", "pauses between records"
"""Names of the time between records: the second where it shows pauses that are no evaluations and checkpoints."""
_COUNTED = frozenset({"count", "learning_rate", "epoch", "elapsed", "step", "progress"})
"""Canonical names, up to a slash, of what a program sets or counts: their course is no surprise."""


@dataclass(frozen=True, eq=False)
class AnomalySet:
    """`at`: records of `series`, ascending. `what`: in words, plural. `lines`: of each record, never going back.
    `every`: the records of all such anomalies, where these are more than are compared."""

    series: Series
    kind: Kind
    up: bool
    at: Ints
    what: str
    lines: Lines
    also: tuple[str, ...] = ()
    """Other series that show the same at the same places."""
    every: Ints | None = None
    told: Ints | None = None
    """The lines that said so, where a line and no value shows the anomaly: they explain nothing."""
    follows: tuple[Series, ...] = ()
    """Other series that the anomaly belongs to by its mechanism: a loss scale grows until a step is skipped."""

    @cached_property
    def places(self) -> Ints:
        """The anomalies among `lines`: these are more than the records of a series that was thinned."""
        return self._among_lines(self.at)

    @cached_property
    def all_places(self) -> Ints:
        """The same of all such anomalies."""
        return self.places if self.every is None else self._among_lines(self.every)

    def _among_lines(self, at: Ints) -> Ints:
        if len(self.lines) == len(self.series):
            return at
        return np.searchsorted(self.lines, self.series.line[at].astype(self.lines.dtype))

    def among(self, lines: Lines) -> AnomalySet:
        """The same among all lines that hold such a record, where these are more than were kept."""
        return replace(self, lines=lines) if len(lines) > len(self.series) else self

    @property
    def stride(self) -> float:
        """Steps from one record to the next; 1 where the series counts none."""
        position = self.series.position
        if self.series.unit != "step" or len(position) < 2:
            return 1.0
        apart = np.ones(len(position) - 1)
        if len(self.lines) > len(self.series):
            apart = np.maximum(np.diff(np.searchsorted(self.lines, self.series.line.astype(self.lines.dtype))), 1)
        return float(np.median(np.diff(position) / apart))

    def records_of(self, lines: Lines) -> Ints:
        """The record to which each line leads: the first at or after it; lines after the last record are left out."""
        lines = lines.astype(self.lines.dtype, copy=False)  # else all of the others would be converted
        found = np.unique(np.searchsorted(self.lines, lines, side="left"))
        return found[found < len(self.lines)]


def anomaly_sets(run: Run) -> tuple[AnomalySet, ...]:
    """At most `MOST_SETS`, the main loss first, then those with the most anomalies."""
    judged = [s for s in (*run.series, *_durations(run)) if len(s) >= FEWEST and s.name.split("/")[0] not in _COUNTED]
    judged = sorted(judged, key=len, reverse=True)[:MOST_SERIES]
    found = [*_skipped(run), *_paused(run)]  # ahead of others at the same records, which say less
    found += [a for s in judged for a in _with_slow(s, [*_sets(s, anomalies_of(s, ASKED))])]
    loss = run.loss
    found.sort(key=lambda a: (a.series is not loss, a.series.group != "train", -len(a.at)))
    told: list[AnomalySet] = []
    for one in found:
        same = next((i for i, other in enumerate(told) if _same(one, other)), None)
        if same is None and len(told) < MOST_SETS:
            told.append(one)
        elif same is not None and str(one.series) not in (str(told[same].series), *told[same].also):
            told[same] = replace(told[same], also=(*told[same].also, str(one.series)))
    return tuple(told)


def _sets(series: Series, found: Sequence[Anomaly]) -> Iterator[AnomalySet]:
    for kind, words in ASKED.items():
        for up in (True, False):
            at = np.array([a.start for a in found if a.kind is kind and a.up is up], dtype=np.int64)
            if len(at) >= FEWEST:
                yield _set(series, kind, up, np.sort(at), _words(series, kind, up, words))


def _with_slow(series: Series, found: list[AnomalySet]) -> list[AnomalySet]:
    """The sets of a series; of time all slow records in place of the fewer spikes, of memory all rises that stay."""
    grown = rises(series)
    at = grown if len(grown) else slow_records(series)
    up = len(grown) > 0 or not series.name.startswith(RATES)
    fewer = [a for a in found if a.kind in (Kind.SPIKE, Kind.STEP) and a.up is up]
    if len(at) < FEWEST or len(at) <= MORE * max((len(a.all_places) for a in fewer), default=0):
        return found
    what = f"rises of {series}" if len(grown) else f"slow records by {series}"
    return [_set(series, Kind.SPIKE, up, at, what), *(a for a in found if a not in fewer)]


def _words(series: Series, kind: Kind, up: bool, words: str) -> str:
    way = "" if kind is Kind.IMPOSSIBLE else "upward " if up else "downward "
    return f"{way}{words} of {series if not series.name.startswith('other') else series.original}"


def _set(series: Series, kind: Kind, up: bool, at: Ints, what: str) -> AnomalySet:
    every = at
    if len(at) > MOST_ANOMALIES:
        at = np.sort(np.random.default_rng(0).choice(at, MOST_ANOMALIES, replace=False))
    return AnomalySet(series, kind, up, at, what, np.maximum.accumulate(series.line), every=every)


def _skipped(run: Run) -> Iterator[AnomalySet]:
    """Steps that the log says were skipped, as records of the main loss."""
    loss = run.loss
    if loss is None:
        return
    skipped = [n.line for n in run.notes if n.kind == "step_skipped" and n.source == loss.source]
    lines = np.array(skipped, dtype=np.int64)
    every = _set(loss, Kind.IMPOSSIBLE, True, np.zeros(0, dtype=np.int64), "skipped steps")
    at = every.records_of(lines) if len(lines) else lines
    if len(at) >= FEWEST:
        yield replace(_set(loss, Kind.IMPOSSIBLE, True, at, "skipped steps"), told=lines,
                      follows=tuple(run.find("loss_scale")))


def _durations(run: Run) -> Iterator[Series]:
    """The time between records where the lines are dated and no duration is logged."""
    loss = run.loss
    if loss is None or next(run.find("step_time", "throughput", "tokens_per_second"), None) is not None:
        return
    passed = between_records(loss)
    if passed is not None and float(np.median(passed[1:])) > 0:
        yield replace(loss, name=BETWEEN, original=BETWEEN, values=passed)


def _paused(run: Run) -> Iterator[AnomalySet]:
    """The pauses between records, where the lines are dated."""
    found = pauses_of(run, run.loss) if run.loss is not None else None
    passed = between_records(found.series) if found is not None else None
    if found is not None and passed is not None and len(found.at) >= FEWEST:
        between = replace(found.series, name=PAUSE if not found.regular else BETWEEN, original=BETWEEN, values=passed)
        yield _set(between, Kind.SPIKE, True, found.at, f"pauses of about {np.median(found.seconds):.4g} s")


def _same(one: AnomalySet, other: AnomalySet) -> bool:
    if one.series.source != other.series.source:
        return False
    here, there = one.lines[one.at], other.lines[other.at]
    reach = NEAR * max(1, int(np.median(np.diff(other.lines))))
    near = np.searchsorted(there, here + reach, side="right") > np.searchsorted(there, here - reach, side="left")
    return bool(near.mean() >= SAME)
