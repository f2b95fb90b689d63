"""The schedule and the run have different lengths, as the schedule object itself says.

Only a run that came to its own end is judged. `kind`: "warmup" where the rate was still on its way to the schedule's
peak when the run ended; "turned" where a cosine was stepped beyond its end and climbed again; "epochs" where the
schedule was made for as many steps as the optimizer took and stepped much more seldom; "often" where it was stepped
several times an optimizer step and was at its end before the run; "longer" where the run ended long before the
schedule: a short trial of a long program looks the same, so that is a remark.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.course import SOURCE, at_line
from traindx_tools.program.entities import Schedule
from traindx_tools.program.program import Program
from traindx_tools.rules import Rule, Threshold

STEPS, NEAR, MUCH = 20, 0.1, 0.5

RULE = Rule(
    id="T211",
    name="schedule-and-run",
    title="The learning-rate schedule does not fit the run",
    severity=Severity.HIGH,
    sees="the horizon and the warm-up that scheduler objects hold, against their steps and the optimizer's",
    matters="the rate never reaches its height, never decays, or comes back: most steps have a rate nobody chose",
    alike=("a short trial of a program whose schedule is for the long run",
           "a cosine with restarts: made to climb again"),
    confirm=("print(scheduler.last_epoch, steps_of_the_run, warmup_steps, total_steps)",),
    thresholds={"steps": Threshold(STEPS, "optimizer steps", "fewer are a trial"),
                "near": Threshold(NEAR, "relative distance of two lengths that are taken as one", "the last batch"),
                "much": Threshold(MUCH, "of the length", "half of the schedule is more than rounding")},
)


def check(program: Program, rank: int = 0) -> Iterator[Finding]:
    """At most one finding a schedule."""
    taken = max((o.steps for o in program.optimizers), default=0)
    if not program.ended or taken < STEPS:
        return
    for schedule in program.schedules:
        said = _said(schedule, taken)
        if said is None:
            continue
        kind, what, bearing, severity = said
        line = schedule.made if kind == "warmup" else schedule.line
        yield RULE.finding(
            f"the {schedule.kind} {what}", at_line(line or schedule.made, taken, rank), SOURCE, bearing=bearing,
            severity=severity,
            measured={"kind": kind, "schedule": schedule.kind, "stepped": schedule.steps, "steps": taken,
                      "horizon": schedule.horizon, "warmup": schedule.warmup or schedule.peak})


Said = tuple[str, str, Bearing, Severity]


def _said(schedule: Schedule, taken: int) -> Said | None:
    done, horizon = schedule.steps, schedule.horizon
    resumed = schedule.reached is not None and schedule.reached > done
    often = 0.0 if resumed else done / taken
    alike = horizon is not None and not resumed and abs(horizon - taken) <= NEAR * taken
    if alike and done <= MUCH * taken:
        peak = f"; it is highest at its step {schedule.peak}" if schedule.peak is not None else ""
        return "epochs", (f"was made for {horizon} steps, as many as the optimizer took ({taken}), and was stepped "
                          f"{done} times{peak}"), Bearing.CAUSE, Severity.HIGH
    done = schedule.reached if resumed and schedule.reached is not None else done
    warmup = schedule.warmup if schedule.warmup is not None else schedule.peak
    if warmup is not None and done < warmup and done > 1:
        return "warmup", (f"reaches its peak at its step {warmup}; the run ended after {taken} optimizer steps and "
                          f"{done} of the schedule's"), Bearing.CAUSE, Severity.HIGH
    if horizon is None:
        return None
    if often >= 1.5 and done >= (1 + MUCH) * horizon:
        return "often", (f"was stepped {done} times in {taken} optimizer steps and was made for {horizon}: it was at "
                         "its end early"), Bearing.CAUSE, Severity.HIGH
    if schedule.turns and done > (1 + NEAR) * horizon:
        return "turned", (f"was made for {horizon} steps and stepped {done} times: it climbed again after its end"), \
            Bearing.CAUSE, Severity.HIGH
    if done < MUCH * horizon:
        return "longer", f"was made for {horizon} steps and stepped {done} times when the run ended", Bearing.SIGN, \
            Severity.LOW
    return None
