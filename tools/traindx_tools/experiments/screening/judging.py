"""Which of many single runs stand out, each with one change: against the control, and against each other.

Most changes do nothing to the symptom: they are each other's controls, and what they scatter is what chance does in
this program. One stands out that is better than the control, and than the middle of all, by more than four times that
scatter (1.4826 times the median absolute deviation), more than two runs are told apart by at all (5 % of the level),
and more than twice the noise of its own records. Of 60 normal arms without an effect that calls one in 500 screens;
what stands out is tried again with other seeds before it counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from traindx_tools.experiments.compare import apart
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.reading import Measured, counted_otherwise, event, number, shared_by
from traindx_tools.experiments.trace import Trace

TIMES_SCATTER = 4.0
FEWEST = 5
"""Arms from which their scatter is known."""
_SCALE_MAD = 1.4826
Word = Literal["goes", "better", "alike", "same", "worse", "failed", "unread"]


@dataclass(frozen=True)
class Judged:
    """What one arm came to. `value`: the number, or the step of the event's onset (infinite: it did not come)."""

    word: Word
    value: float = math.nan
    gain: float = 0.0
    """How much better than the control, in the unit of the outcome; of an event 1 where it is gone."""
    why: str = ""


UNREAD = Judged("unread")


@dataclass(frozen=True)
class Scatter:
    """What arms without an effect differ by: `middle` from the control, `value` from each other."""

    value: float = 0.0
    middle: float = 0.0


def scatter_of(control: Measured, arms: Sequence[Measured | None]) -> Scatter:
    """From the differences of the arms that are not bit for bit the control."""
    told = [m.value - control.value for m in arms
            if m is not None and math.isfinite(m.value) and not (m.mark and m.mark == control.mark)]
    if len(told) < FEWEST:
        return Scatter()
    middle = median(told)
    return Scatter(_SCALE_MAD * median(abs(t - middle) for t in told), middle)


def judged(outcome: Outcome, control: Trace, traces: Sequence[Trace], at: float | None) -> list[Judged]:
    """One word for each arm, in their order. `at`: the step up to which numbers are read."""
    if outcome.is_event:
        return [_of_event(outcome, control, t) for t in traces]
    by = shared_by(outcome, [control, *traces], at)
    base = number(outcome, control, at, by)
    if base is None:
        return [Judged("unread", why="the control shows no number") for _ in traces]
    read = [number(outcome, t, at, by) for t in traces]
    scatter = scatter_of(base, read)
    other = [counted_otherwise(outcome, control, t) for t in traces]
    return [Judged("failed", why=o) if o else _of_number(outcome, base, m, t, scatter)
            for m, t, o in zip(read, traces, other, strict=True)]


def _of_event(outcome: Outcome, control: Trace, trace: Trace) -> Judged:
    before, seen = event(outcome, control), event(outcome, trace)
    if _hindered(trace):
        return Judged("failed", why=_hindered(trace))
    if seen.there:
        same = seen.at == before.at
        return Judged("same" if same else "alike", seen.at)
    if trace.broke and outcome.kind not in ("error", "exit"):
        return Judged("failed", why=trace.broke)
    if seen.unit == before.unit == "step" and seen.at < before.at:
        return Judged("unread", why=f"it ended at {seen.unit} {seen.at:g}, before the {before.at:g} of the control")
    return Judged("goes", math.inf, 1.0)


def _of_number(outcome: Outcome, base: Measured, seen: Measured | None, trace: Trace, scatter: Scatter) -> Judged:
    if _hindered(trace) or (trace.broke and seen is None):
        return Judged("failed", why=_hindered(trace) or trace.broke)
    if seen is None:
        return Judged("unread", why="it shows no number")
    if base.mark and seen.mark == base.mark:
        return Judged("same", seen.value)
    if not math.isfinite(base.value) or not math.isfinite(seen.value):
        word: Word = "alike" if math.isfinite(base.value) == math.isfinite(seen.value) else (
            "goes" if math.isfinite(seen.value) else "worse")
        return Judged(word, seen.value, 1.0 if word == "goes" else 0.0)
    if trace.broke:
        return Judged("failed", seen.value, why=trace.broke)
    gain = seen.value - base.value if outcome.up else base.value - seen.value
    room = max(TIMES_SCATTER * scatter.value, apart(base, seen))
    beyond = gain - scatter.middle if outcome.up else gain + scatter.middle  # where the control had bad luck, all gain
    if min(abs(gain), abs(beyond)) <= room or gain * beyond < 0:
        return Judged("alike", seen.value, gain)
    if gain < 0:
        return Judged("worse", seen.value, gain)
    well = outcome.bound is not None and (seen.value >= outcome.bound if outcome.up else seen.value <= outcome.bound)
    return Judged("goes" if well else "better", seen.value, gain)


def _hindered(trace: Trace) -> str:
    """Why a run says nothing of its change, "" where it does."""
    if trace.applied.problem and not trace.applied.times:
        return trace.applied.problem
    return {"time": "its time was up", "memory": "it took too much memory"}.get(trace.stopped, "")
