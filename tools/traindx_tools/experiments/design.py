"""What comes next in an experiment: a pure function from the runs so far to a run or to the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.experiments import on_events, on_numbers
from traindx_tools.experiments.arms import Design, Next, Run, changes, controls
from traindx_tools.experiments.horizon import end_of, positions
from traindx_tools.experiments.place import Enough
from traindx_tools.experiments.reading import event
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.verdict import Verdict


def following(design: Design, runs: Sequence[Run]) -> Next | Verdict:
    """The run that is wanted next, or what the experiment came to."""
    return on_events.judge(design, runs) if design.outcome.is_event else on_numbers.judge(design, runs)


def promising(design: Design, runs: Sequence[Run]) -> bool:
    """Whether the first pair of runs gives reason to go on: with the change it is better by more than runs scatter."""
    first = (*controls(runs)[:1], *changes(runs)[:1])
    if len(first) < 2:
        return False
    if design.outcome.is_event:
        return event(design.outcome, first[0].trace).there and not event(design.outcome, first[1].trace).there
    return on_numbers.is_better(design, first)


def enough_for(design: Design, runs: Sequence[Run], wanted: Next) -> Enough:
    """When the wanted run has shown what it is run for: the event, the horizon, or what decides the experiment."""
    return _of_event(design, wanted) if design.outcome.is_event else _of_number(design, runs, wanted)


def _of_event(design: Design, wanted: Next) -> Enough:
    def enough(trace: Trace) -> bool:
        seen = event(design.outcome, trace)
        at = trace.seconds if wanted.unit == "second" else seen.at
        return seen.there or (wanted.horizon is not None and at >= wanted.horizon)

    return enough


def _of_number(design: Design, runs: Sequence[Run], wanted: Next) -> Enough:
    """Judged when the run comes to a position at which it can be compared, once each."""
    horizon = wanted.horizon
    if horizon is None:
        return lambda _: False
    first = controls(runs)[0].trace
    ahead = list(positions(design.outcome, first, horizon, design.least))

    def enough(trace: Trace) -> bool:
        end = end_of(design.outcome, trace)
        if end is None or not ahead or end < ahead[0]:
            return False
        while ahead and end >= ahead[0]:
            ahead.pop(0)
        return end >= horizon or _decides(design, runs, Run(wanted.changed, wanted.seed, trace))

    return enough


def _decides(design: Design, runs: Sequence[Run], partial: Run) -> bool:
    """Whether an effect is already certain with a run as far as it came."""
    found = on_numbers.judge(design, [*runs, partial])
    return isinstance(found, Verdict) and found.is_effect
