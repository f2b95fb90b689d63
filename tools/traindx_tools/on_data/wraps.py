"""Samples that wrapped around at the edge of their type: where a series goes over the top, it comes in at the bottom.

What is larger than the type can hold came back with the other sign. From one sample to the next that is a jump of
nearly the full range. What the samples before it say of the next one (a linear prediction, learned where nothing jumps)
is far from it, and near to it once the range is added. Loud noise is predicted near the middle and not beyond an edge;
what is clipped stays at the edge; square waves stand still before they jump; saw teeth jump in one direction only.
"""

from __future__ import annotations

import numpy as np

from traindx_tools.on_data.column import Array

JUMP = 0.75
"""Of the full range, from one sample to the next."""
BEFORE = 6
"""Samples that say the next one, among which nothing jumps."""
CALM = 0.4
"""Of the full range, what a step among them may be."""
ON = 0.75
"""Of the jumps, that come nearer to what was said once the range is added."""
BACK = 0.2
"""Of the jumps, those in the rarer direction."""
STILL = 0.002
"""Of the full range: a step below it is none."""
AT_EDGE = 0.1
"""Of the samples near the edges, those that may stay at the extremes themselves."""
RIDGE = 1e-4
ROUNDS = 6
RANGES = (2.0**8, 2.0**16, 2.0**32)


def wraps_in(series: Array, full: float) -> int:
    """How often a series wraps; 0 where its jumps are of another kind. `full`: the range of its type."""
    x = np.asarray(series, np.float64)
    if len(x) < 8 * BEFORE:
        return 0
    steps = np.diff(x)
    jumps = np.abs(steps) >= JUMP * full
    if int(jumps.sum()) < 2 or not _both_ways(steps[jumps]):
        return 0
    windows = np.lib.stride_tricks.sliding_window_view(x, BEFORE + 1)
    calm = np.abs(np.diff(windows[:, :-1], axis=1)).max(axis=1) < CALM * full
    first = calm & (np.abs(windows[:, -1] - windows[:, -2]) >= JUMP * full)
    if calm.sum() < 8 * BEFORE or first.sum() < 2 or _is_clipped(x, full):
        return 0
    said = _said(windows[calm], windows[first], full)
    here = windows[first, -1]
    as_stored = np.abs(said - here)
    wrapped = np.abs(said - here + full * np.sign(here - windows[first, -2]))
    moving = np.abs(windows[first, -2] - windows[first, -3]) > STILL * full
    good = (wrapped < as_stored) & moving
    return int(jumps.sum()) if float(good.mean()) >= ON and _both_ways((here - windows[first, -2])[good]) else 0


def _both_ways(steps: Array) -> bool:
    down = float((steps < 0).mean()) if len(steps) else 0.0
    return min(down, 1.0 - down) >= BACK


def _is_clipped(x: Array, full: float) -> bool:
    """Whether many of the samples near the extremes are the extremes: what is too loud stays there, and wraps not."""
    middle = 0.0 if x.min() < 0 else full / 2
    near = np.abs(x - middle) >= 0.9 * full / 2
    at = (x == x.max()) | (x == x.min())
    stays = (x[1:] == x[:-1]) & at[1:]
    return int(stays.sum()) > max(4.0, AT_EDGE * float(near.sum())) or int(at.sum()) > 0.5 * float(near.sum())


def _said(known: Array, asked: Array, full: float) -> Array:
    """The last sample of each window from those before it, shape (windows, BEFORE + 1) both.

    It is learned in rounds: what comes nearer to what is said with the range added is taken for that in the next one.
    Of noise nothing does, since it is said to be near the middle.
    """
    x, y = known[:, :-1] / full, known[:, -1] / full
    gram = x.T @ x
    gram += RIDGE * np.trace(gram) / BEFORE * np.eye(BEFORE)
    target = y
    for _ in range(ROUNDS):
        weights = np.linalg.solve(gram, x.T @ target)
        target = y + np.clip(np.round(x @ weights - y), -1.0, 1.0)
    return np.asarray(asked[:, :-1] @ weights)


def range_of(values: Array) -> tuple[float, float]:
    """The range of the type that whole numbers came near both edges of, and its lower edge; (0, 0) where none is."""
    low, high = float(values.min()), float(values.max())
    for full in RANGES:
        for edge in (-full / 2, 0.0):
            if low >= edge and high < edge + full and high - low >= 0.9 * full:
                return full, edge
    return 0.0, 0.0


def range_of_fractions(values: Array) -> float:
    """2 for samples that were divided by half of their type's range, 0 for any others."""
    low, high = float(values.min()), float(values.max())
    return 2.0 if -1.0 <= low <= -0.95 and 0.95 <= high <= 1.0 else 0.0
