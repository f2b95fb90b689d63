"""Tries every change on one kept step, within a bound of time, and says what came of each; whatever ran the step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from traindx_tools.experiments.replaying.changes import NO_UPDATE, ROWS, changes_of
from traindx_tools.experiments.replaying.judging import Measured, Tried, judged, shows
from traindx_tools.experiments.replaying.rows import NoTime, Rows, find_rows, most_runs, without
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import Symptom

SECONDS = 30.0
"""Of one step's study together; what did not fit is said."""


class NotReplayable(Exception):
    """The step cannot be run again, or took another course; the text says why."""


class Trials(Protocol):
    """Runs one kept step: as it is, and changed. Every method may raise NotReplayable with why."""

    framework: str
    at: str
    """Where the symptom comes from, once `placed` was asked."""
    runs: int
    exact: bool
    difference: float

    def control(self) -> Measured:
        """The step as it is, which has to be the program's own."""

    def placed(self, control: Measured) -> Measured | None:
        """What the passes give without the last update; None where there is none."""

    def changed(self, name: str, rows: Sequence[int] | None = None) -> Measured:
        """The step with a change of the table."""

    def row_count(self) -> int:
        """The rows of the batch in which the symptom comes about."""

    def row_numbers(self, rows: Sequence[int]) -> tuple[int, ...]:
        """What these rows are called in the dataset; empty where that is not known."""


def tried_on(trials: Trials, symptom: Symptom, rank: int = 0, seconds: float = SECONDS) -> Study | None:
    """What each change does to the symptom; None where the step, run again as it is, does not show it.

    Raises NotReplayable where the step is not the program's own when it is run again.
    """
    return _Trying(trials, symptom, rank, seconds).made()


class _Trying:
    def __init__(self, trials: Trials, symptom: Symptom, rank: int, seconds: float) -> None:
        self._trials, self._symptom, self._rank, self._seconds = trials, symptom, rank, seconds
        self._began = time.monotonic()
        self._longest = 0.0
        self._rows: Rows | None = None

    def made(self) -> Study | None:
        symptom, trials = self._symptom, self._trials
        control = trials.control()
        without_update = trials.placed(control)
        if without_update is not None:
            control = replace(control, before=without_update.loss)
        if not shows(symptom, control):
            return None
        tried = [self._tried(name, control, without_update) for name in changes_of(trials.framework)]
        carried = self._rows.found if self._rows is not None and self._rows.carry else ()
        return Study(symptom, control, trials.at, tuple(t for t in tried if t is not None), trials.exact, self._rank,
                     self._rows, trials.row_numbers(carried) if carried else (), time.monotonic() - self._began,
                     trials.runs, difference=trials.difference)

    def _tried(self, name: str, control: Measured, without_update: Measured | None) -> Tried | None:
        about = changes_of(self._trials.framework)[name].about
        began = time.monotonic()
        try:
            if name == NO_UPDATE:
                if without_update is None:
                    return None
                measured = without_update
            else:
                self._in_time()
                measured = self._without_rows() if name == ROWS else self._trials.changed(name)
        except (NotReplayable, NoTime) as why:
            return Tried(name, about, "untried", str(why))
        finally:
            self._longest = max(self._longest, time.monotonic() - began if name != ROWS else 0.0)
        word, why_so, better = judged(self._symptom, control, measured)
        return Tried(name, about, word, why_so, measured, better)

    def _in_time(self) -> None:
        if time.monotonic() - self._began + self._longest > self._seconds:
            raise NotReplayable(f"the time was up ({self._seconds:g} s)")

    def _without_rows(self) -> Measured:
        count = self._trials.row_count()

        def shown(rows: Sequence[int]) -> bool:
            self._in_time()
            return shows(self._symptom, self._trials.changed(ROWS, rows))

        self._rows = found = find_rows(count, shown, most_runs(count))
        if not found.found:
            raise NotReplayable(f"it cannot be laid to a few of the {count} rows")
        if not found.carry:
            raise NotReplayable(f"{len(found.found)} or more of the {count} rows show it alone, and without them it "
                                f"{'goes' if found.gone else 'stays'}: it is not a few rows")
        return self._trials.changed(ROWS, without(found.found, count))
