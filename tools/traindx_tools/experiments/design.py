"""What comes next in an experiment: a pure function from the runs so far to a run or to the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.experiments import on_events, on_numbers
from traindx_tools.experiments.arms import Design, Next, Run
from traindx_tools.experiments.horizon import end_of
from traindx_tools.experiments.place import Enough
from traindx_tools.experiments.reading import event
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.verdict import Verdict


def following(design: Design, runs: Sequence[Run]) -> Next | Verdict:
    """The run that is wanted next, or what the experiment came to."""
    return (on_events if design.outcome.is_event else on_numbers).judge(design, runs)


def enough_for(design: Design, runs: Sequence[Run], wanted: Next) -> Enough:
    """When the wanted run has shown what it is run for: the event, the horizon, or what decides the experiment."""
    def enough(trace: Trace) -> bool:
        if design.outcome.is_event:
            seen = event(design.outcome, trace)
            return seen.there or _beyond(trace.seconds if wanted.unit == "second" else seen.at, wanted.horizon)
        end = end_of(design.outcome, trace)
        if wanted.horizon is None or end is None:
            return False
        if end >= wanted.horizon:
            return True
        return _decides(design, runs, Run(wanted.changed, wanted.seed, trace))

    return enough


def _beyond(at: float, horizon: float | None) -> bool:
    return horizon is not None and at >= horizon


def _decides(design: Design, runs: Sequence[Run], partial: Run) -> bool:
    """Whether an effect is already certain with a run as far as it came."""
    found = on_numbers.judge(design, [*runs, partial])
    return isinstance(found, Verdict) and found.is_effect
