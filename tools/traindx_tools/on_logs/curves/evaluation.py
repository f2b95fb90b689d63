"""What the evaluation does while the training loss changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.on_logs.curves.l216_metric_exactly_constant import SCORES
from traindx_tools.on_logs.curves.shapes import Track
from traindx_tools.on_logs.run import Run, Series

FEWEST = 3
"""Evaluations before and after that are compared."""
SCATTER = 3.0
"""Robust standard deviations of the differences between neighbours: a smaller step is none."""
HELD_OUT = frozenset({"val", "valid", "validation", "eval", "test", "dev"})


def evaluation_goes_on(run: Run, t: Track, start: int) -> bool:
    """Whether no held-out metric is worse behind record `start` of the loss than before it, and there is one.

    Compared are the medians of the last three evaluations before and of all after; of losses less is better, of scores
    (accuracy, F1, recall and the like) more.
    """
    line = int(t.series.line[t.index[start]])
    told = [_worse(s, line, sign) for s, sign in _held_out(run) if s.source == t.series.source]
    known = [w for w in told if w is not None]
    return bool(known) and not any(known)


def _held_out(run: Run) -> Iterator[tuple[Series, float]]:
    """The metrics of the evaluation, with the sign that makes more of them better."""
    for s in run.series:
        if s.group in HELD_OUT and s.rank in (None, 0):
            if "loss" in s.name:
                yield s, -1.0
            elif SCORES.match(s.name):
                yield s, 1.0


def _worse(s: Series, line: int, sign: float) -> bool | None:
    """Whether it is worse behind a line of the log; None where there are too few of either."""
    y, lines = sign * s.values[s.finite], s.line[s.finite]
    before, after = y[lines < line], y[lines > line]
    if min(len(before), len(after)) < FEWEST:
        return None
    scatter = 1.4826 * float(np.median(np.abs(np.diff(before)))) if len(before) > 2 else 0.0
    return bool(np.median(before[-FEWEST:]) - np.median(after) > SCATTER * scatter)
