"""A schedule that is at its end, or runs several times too fast, with most of the planned steps still to go.

A schedule is stepped once for each step of the optimizer (or once an epoch, then it counts fewer). One that counts a
whole multiple of them was stepped in every small batch, or by every process, and is at its end after that part of the
training. What is planned stands in the configuration beside the checkpoint. A rate that is that of a cosine or of a
line over just the planned steps, at the schedule's own count, says that the schedule was made for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.counters import counters_of, named_step
from traindx_tools.on_weights.planned_steps import Planned, planned_steps
from traindx_tools.on_weights.schedules import ZERO, Schedule, on_plan, schedules_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_LEFT, _LEAST = 0.9, 20

RULE = Rule(
    id="W142",
    name="schedule-ahead",
    title="The schedule is ahead of the optimizer, or over before the training is",
    severity=Severity.HIGH,
    sees="last_epoch, T_max and the last rates of a schedule beside the optimizer's steps and the steps that the "
         "configuration plans.",
    matters="The rate is zero, or falls several times too fast: the steps that are left change little or nothing.",
    alike=("a schedule of an earlier phase", "one that is stepped for each process by design, with a length that many "
           "times the steps", "a training that is over"),
    confirm=("count the calls of scheduler.step() in one step of the optimizer",
             "plot the learning rate over the steps that are planned"),
    thresholds={
        "left": Threshold(_LEFT, "of the planned steps that were made, at most", "the end of a training is near zero"),
        "least": Threshold(_LEAST, "steps", "small numbers are multiples by chance"),
        "zero": Threshold(ZERO, "of the first rate", "below it no weight in float32 moves"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Once a checkpoint with one optimizer."""
    if not seen.main:
        return
    schedules = list(schedules_of(seen.checkpoint.values))
    steps = _steps(seen)
    planned = planned_steps(seen.checkpoint) if schedules and steps >= _LEAST else None
    if planned is None or steps > _LEFT * planned.steps:
        return
    for schedule in schedules:
        yield from _judged(seen, schedule, steps, planned)


def _judged(seen: Seen, schedule: Schedule, steps: int, planned: Planned) -> Iterator[Finding]:
    times = round(schedule.count / steps)
    several = times >= 2 and abs(schedule.count - times * steps) <= times
    left = f"{planned.steps - steps:,} of the {planned.steps:,} steps that {planned.file} plans are still to go"
    rate = f"the rate is {schedule.rates[0]:.3g}" if schedule.rates else "the rate is not kept"
    if several and (schedule.at_end or schedule.length == planned.steps or on_plan(schedule, planned)):
        why = ("as many as the configuration accumulates small batches: it is stepped in each of them"
               if times in planned.accumulated else "it is stepped in every small batch, or by every process")
        yield _finding(
            seen, schedule, f"{schedule.key} is {schedule.count:,} after {steps:,} steps of the optimizer, {times} "
            f"times as many, {why}; {rate}{', at its end,' if schedule.at_end else ''} and {left}", "several",
            Bearing.CAUSE, None, steps, planned.steps, times)
    elif not several and schedule.at_zero and not schedule.restarts:
        length = f" of its {schedule.length:,}" if schedule.length is not None else ""
        yield _finding(
            seen, schedule, f"{rate} at {schedule.key} {schedule.count:,}{length}, and {left}: the schedule is over "
            "before the training is", "over", Bearing.SIGN, Severity.MEDIUM, steps, planned.steps, 1)


def _steps(seen: Seen) -> int:
    """Steps of the one optimizer: those that most of its parameters made, or the run's where it counts none or the path
    says the same as the run.
    """
    if len(seen.checkpoint.optimizers) != 1:
        return 0
    counts = counters_of(seen.checkpoint)
    own = counts.get(f"{seen.checkpoint.optimizers[0].key}.step".lstrip("."))
    named = Counter(n for k, n in counts.items() if k.rpartition(".")[2] in ("global_step", "step"))
    if named_step(seen.path) in named:
        return named_step(seen.path) or 0
    return own if own is not None else named.most_common(1)[0][0] if named else 0


def _finding(seen: Seen, schedule: Schedule, text: str, kind: str, bearing: Bearing, severity: Severity | None,
             steps: int, planned: int, times: int) -> Finding:
    return RULE.finding(f"{text} ({seen.path})", Location(file=seen.path, module=schedule.key), seen.path,
                        bearing=bearing, severity=severity,
                        measured={"kind": kind, "name": schedule.key, "count": schedule.count, "steps": steps,
                                  "planned": planned, "k": times})
