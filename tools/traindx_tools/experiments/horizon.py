"""How far runs go: the shortest horizon that shows the symptom, found on the control before anything is changed."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.experiments.compare import EARLY
from traindx_tools.experiments.level import FLOOR, TIMES_NOISE
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.reading import curve_of, metric_of, number
from traindx_tools.experiments.trace import Trace

TIMES_ONSET = 3.0
STEPS_BEYOND = 5.0
"""A changed run has to be without the event three times as long as the control, and five steps longer: a change that
only delays it by less moves it and does not remove it."""


def beyond(onset: float) -> float:
    """How far a changed run goes for an event that the control shows at this step (or second)."""
    return max(TIMES_ONSET * onset, onset + STEPS_BEYOND)


def end_of(outcome: Outcome, trace: Trace) -> float | None:
    """The last step of the outcome's curve; its number of records where no steps are counted; None without one."""
    curve = curve_of(trace, metric_of(outcome))
    if curve is None or not len(curve.values):
        return None
    known = curve.steps[np.isfinite(curve.steps)]
    return float(known.max()) if len(known) else float(len(curve.values))


def has_come_to(outcome: Outcome, trace: Trace, position: float) -> bool:
    """Whether a run can be read at this position: it went so far, or ended by itself before."""
    end = end_of(outcome, trace)
    return (end is not None and end >= position) or (trace.ended and not trace.stopped)


def positions(outcome: Outcome, control: Trace, most: float, least: float = 0.0) -> tuple[float, ...]:
    """Where runs are compared: at the horizon `most`, and before it where the control already shows what it shows then.

    A curve that is still on its way at a quarter of the horizon says nothing of where it ends. None lies before
    `least`.
    """
    last = number(outcome, control, most)
    if last is None:
        return ()
    room = max(TIMES_NOISE * last.noise, FLOOR * last.scale)
    early: list[float] = []
    for share in EARLY:
        at = math.ceil(share * most)
        there = number(outcome, control, at)
        if at >= least and there is not None and abs(there.value - last.value) <= room:
            early.append(float(at))
    return (*early, most)
