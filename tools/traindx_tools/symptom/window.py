"""The part of a series that a stated place names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import Track, track
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom.stated import Place

FEWEST = 3
"""Values below which a part of a series says nothing by itself."""


@dataclass(frozen=True, eq=False)
class Window:
    """The finite values of a series from index `start` up to `end` of its track, and the place that named them."""

    series: Series
    whole: Track
    start: int
    end: int
    told: bool
    """Whether the words narrowed it and the series reaches there."""
    outside: bool = False
    """Whether the words name a place that the record does not hold."""

    @property
    def cut(self) -> Track:
        """The values inside."""
        return self.whole.part(self.start, self.end)


def window_of(series: Series, place: Place, run: Run, onward: bool = False) -> Window | None:
    """The values that a place names; all of them where it names none. None where nothing finite was recorded.

    `onward`: from that place to the end, for what "stops" or "stays" there.
    """
    whole = track(series)
    if whole is None:
        return None
    bounds = _bounds(series, whole, place, run)
    if bounds is None:
        return Window(series, whole, 0, len(whole), False)
    if onward and place.kind in ("at", "soon", "resume"):
        bounds = bounds[0] if place.kind == "at" else bounds[1], float("inf")
    x = _axis(series, whole, place)
    inside = np.flatnonzero((x >= bounds[0]) & (x <= bounds[1]))
    if len(inside) < 1:
        return Window(series, whole, 0, len(whole), False, True)
    first, last = int(inside[0]), int(inside[-1]) + 1
    if last - first < FEWEST:
        first, last = max(0, first - FEWEST), min(len(whole), last + FEWEST)
    return Window(series, whole, first, last, True)


def _axis(series: Series, whole: Track, place: Place) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What the place counts in: epochs where it says so and they were recorded, else the position."""
    if place.unit == "epoch" and series.unit != "epoch" and np.isfinite(series.epoch).all():
        return np.asarray(series.epoch[whole.index])
    return whole.x


def _bounds(series: Series, whole: Track, place: Place, run: Run) -> tuple[float, float] | None:
    x = _axis(series, whole, place)
    first, last = float(x[0]), float(x[-1])
    near = max(0.02 * (last - first), 2 * float(np.median(np.abs(np.diff(x)))) if len(x) > 1 else 0.0)
    other_unit = place.unit == "epoch" and whole.unit == "step" and not np.isfinite(series.epoch).all()
    if place.low is not None and other_unit:
        return None
    if place.kind == "resume":
        at = resumed_at(series, run)
        return None if at is None else (float(whole.x[max(0, at - 8)]), float(whole.x[min(len(whole) - 1, at + 8)]))
    if place.low is None:
        return (
            {
                "start": (first, first + 0.1 * (last - first)),
                "soon": (first, first + 0.3 * (last - first)),
                "end": (last - 0.2 * (last - first), last),
            }.get(place.kind)
            if place.kind != "start"
            else None
        )
    low, high = place.low, place.high if place.high is not None else place.low
    return {
        "at": (low - near, high + near),
        "range": (low, high),
        "first": (first, first + low),
        "after": (low, last),
    }.get(place.kind, (low - near, high + near))


def resumed_at(series: Series, run: Run) -> int | None:
    """The index of the first value after the last note of a resume in the same file; None where no note tells of one.

    A step counter that goes back or a step between files tells of it as well.
    """
    lines = [n.line for n in run.notes if n.kind == "resume" and n.source == series.source]
    after = [int(np.searchsorted(series.line, line)) for line in lines]
    inside = [i for i in after if 0 < i < len(series)]
    if inside:
        return inside[-1]
    return None


def resume_in(window: Window, place: Place, run: Run) -> int | None:
    """Where in the track the run goes on after an interruption, if that is what is spoken of and the log tells it."""
    at = resumed_at(window.series, run) if place.kind == "resume" else None
    return None if at is None else int(np.searchsorted(window.whole.index, at))


def named_in(window: Window, place: Place) -> float | None:
    """The position that the words name, where they count in what the series counts in."""
    return place.low if window.told and (place.unit == "epoch") == (window.whole.unit == "epoch") else None
