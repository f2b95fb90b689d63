"""Tries every change on one scenario, within a bound of time, and says what came of each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from traindx_tools.experiments.replaying.changes import CHANGES, NO_UPDATE, ROWS
from traindx_tools.experiments.replaying.judging import Measured, Tried, judged, shows
from traindx_tools.experiments.replaying.rows import NoTime, Rows, find_rows, most_runs, without
from traindx_tools.experiments.replaying.study import PASS, Study
from traindx_tools.on_torch.replaying.kept import Passes, Scenario
from traindx_tools.on_torch.replaying.quiet import unnoticed_by
from traindx_tools.on_torch.replaying.trials import Trials
from traindx_tools.on_torch.snapshot.rerun import NotReplayable

SECONDS = 30.0
"""Of one step's study together; what did not fit is said."""


def study(scenario: Scenario, rank: int = 0, seconds: float = SECONDS) -> Study | None:
    """What each change does to the symptom; None where a loss has risen and the last update has not raised it.

    Raises NotReplayable where the step is not the program's own when it is run again.
    """
    models = {id(m): m for p in (scenario.passes, scenario.update.passes if scenario.update else None)
              if p is not None for m in p.models()}
    with unnoticed_by(list(models.values())) as set_back:
        return _Study(scenario, Trials(scenario, set_back), rank, seconds).made()


class _Study:
    def __init__(self, scenario: Scenario, trials: Trials, rank: int, seconds: float) -> None:
        self._scenario, self._trials, self._rank, self._seconds = scenario, trials, rank, seconds
        self._began = time.monotonic()
        self._longest = 0.0
        self._rows: Rows | None = None

    def made(self) -> Study | None:
        symptom, trials = self._scenario.symptom, self._trials
        control = trials.control()
        without_update = trials.placed(control)
        if without_update is not None:
            control = replace(control, before=without_update.loss)
        if not shows(symptom, control):
            return None
        tried = [self._tried(name, control, without_update) for name in CHANGES]
        carries = self._rows is not None and self._rows.carry
        return Study(symptom, control, trials.at, tuple(t for t in tried if t is not None), trials.exact, self._rank,
                     self._rows, self._numbers() if carries else (), time.monotonic() - self._began, trials.runs,
                     difference=trials.difference)

    def _tried(self, name: str, control: Measured, without_update: Measured | None) -> Tried | None:
        about = CHANGES[name].about
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
        word, why_so, better = judged(self._scenario.symptom, control, measured)
        return Tried(name, about, word, why_so, measured, better)

    def _in_time(self) -> None:
        if time.monotonic() - self._began + self._longest > self._seconds:
            raise NotReplayable(f"the time was up ({self._seconds:g} s)")

    # ---- rows

    def _without_rows(self) -> Measured:
        count, _ = self._passes().batch()

        def shown(rows: Sequence[int]) -> bool:
            self._in_time()
            return shows(self._scenario.symptom, self._trials.changed(ROWS, rows))

        self._rows = found = find_rows(count, shown, most_runs(count))
        if not found.found:
            raise NotReplayable(f"it cannot be laid to a few of the {count} rows")
        if not found.carry:
            raise NotReplayable(f"{len(found.found)} or more of the {count} rows show it alone, and without them it "
                                f"{'goes' if found.gone else 'stays'}: it is not a few rows")
        return self._trials.changed(ROWS, without(found.found, count))

    def _passes(self) -> Passes:
        update = self._scenario.update
        if self._trials.at == PASS:
            return self._scenario.passes
        if update is None or update.passes is None:
            raise NotReplayable("the passes of the step before were not kept")
        return update.passes

    def _numbers(self) -> tuple[int, ...]:
        drawn, rows = self._passes().drawn, self._rows
        if rows is None or len(drawn) != rows.of:
            return ()
        return tuple(drawn[i] for i in rows.found)
