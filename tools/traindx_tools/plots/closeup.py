"""The window that deserves a second, closer look: where it began, too narrow to be seen in the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Severity
from traindx_tools.on_logs.run import Floats
from traindx_tools.plots.axis import Axis
from traindx_tools.plots.marks import Marks
from traindx_tools.plots.panels import Panel

_BEFORE, _AFTER = 24, 12
"""Records shown before and after the onset."""
_NARROW = 0.25
"""Share of the run below which the window is worth its own column."""
_EVENT = 0.1
"""Share of the run below which a finding is an event rather than a state."""


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest position on an axis, margin included."""

    low: float
    high: float
    margin: float = 0.0

    @property
    def width(self) -> float:
        return self.high - self.low


def bounds_of(panels: Sequence[Panel], axis: Axis, marks: Marks) -> Bounds:
    """Everything that any panel or mark holds."""
    placed = [axis.place(s) for p in panels for s in p.series]
    ends = [float(e) for x in placed if x is not None for e in (x.min(), x.max())]
    ends += [e for m in marks.rows for span in m.spans for e in span]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = (high - low) * 0.012 or 0.5
    return Bounds(low - room, high + room, room)


def closeup_of(panels: Sequence[Panel], axis: Axis, marks: Marks, whole: Bounds) -> Bounds | None:
    """The records around the first non-finite value, else around the first short finding."""
    start = _first_bad(panels, axis)
    if start is None:
        start = _first_onset(marks, whole)
    records = _longest(panels, axis)
    if start is None or records is None:
        return None
    at = int(np.searchsorted(records, start))
    low, high = records[max(at - _BEFORE, 0)], records[min(at + _AFTER, len(records) - 1)]
    if high <= low or high - low > _NARROW * whole.width:
        return None
    room = (high - low) * 0.02
    return Bounds(float(low - room), float(high + room), float(room))


def _longest(panels: Sequence[Panel], axis: Axis) -> Floats | None:
    placed = [x for p in panels[:2] for s in p.series if (x := axis.place(s)) is not None]
    return np.unique(max(placed, key=len)) if placed else None


def _first_bad(panels: Sequence[Panel], axis: Axis) -> float | None:
    firsts = [float(x[~s.finite].min()) for p in panels for s in p.series
              if not s.finite.all() and (x := axis.place(s)) is not None]
    return min(firsts, default=None)


def _first_onset(marks: Marks, whole: Bounds) -> float | None:
    """An event, such as a spike: what lasts is seen in the whole run."""
    short = (span for m in marks.rows if m.severity is not Severity.INFO for span in m.spans
             if span[1] - span[0] < _EVENT * whole.width)
    return min((start for start, _ in short), default=None)
