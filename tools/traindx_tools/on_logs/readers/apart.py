"""Values that a program prints before or behind its training, beside those of each epoch under the same name.

`persistence val mse 0.28` in the last line is no further epoch of `val mse`: where a series has a step or an epoch at
each of its values but a few before the first and behind the last of them, those are a series of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.run import Run, Series

FEWEST, MOST = 5, 0.2
BESIDE = "apart"
"""What the name of such a series ends in."""


def set_apart(run: Run) -> Run:
    """The run with such values in series of their own."""
    series = tuple(part for s in run.series for part in _parts(s))
    return run if len(series) == len(run.series) else replace(run, series=series)


def _parts(series: Series) -> Iterator[Series]:
    placed = np.isfinite(series.step) | np.isfinite(series.epoch)
    at = np.flatnonzero(placed)
    others = len(series) - len(at)
    if not others or len(at) < FEWEST or others > max(2, MOST * len(at)) or at[-1] - at[0] >= len(at):
        yield series
        return
    for name, part in ((series.name, placed), (f"{series.name}/{BESIDE}", ~placed)):
        yield replace(series, name=name, values=series.values[part], step=series.step[part],
                      epoch=series.epoch[part], time=series.time[part], line=series.line[part])
