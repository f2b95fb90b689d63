"""Values whose line another process tore: their step stands on the first piece, and they on the second.

One such value among thousands would make the whole series count lines in place of steps. Its step is the one that lies
where it does between those of the values beside it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.run import Run, Series

FEWEST = 20
SHARE = 0.05
"""Of the values of a series, at most: more are not torn lines but records of another kind."""


def with_steps(run: Run) -> Run:
    """The run with the steps of such values."""
    series = tuple(map(_filled, run.series))
    return replace(run, series=series) if any(a is not b for a, b in zip(series, run.series, strict=True)) else run


def _filled(series: Series) -> Series:
    known = np.isfinite(series.step)
    missing = np.flatnonzero(~known)
    if not len(missing) or len(series) < FEWEST or len(missing) > SHARE * len(series):
        return series
    at = np.flatnonzero(known)
    behind = np.searchsorted(at, missing)
    if behind[0] == 0 or behind[-1] == len(at):
        return series
    before, after = series.step[at[behind - 1]], series.step[at[behind]]
    if not (before < after).all():
        return series
    steps = series.step.copy()
    steps[missing] = np.floor(np.interp(missing, at, series.step[at]))
    return replace(series, step=steps)
