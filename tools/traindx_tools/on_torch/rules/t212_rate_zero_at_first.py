"""The learning rate is exactly zero for many of the first steps, and is above zero later.

A warm-up that begins at zero has one such step. Ten and more come from a formula that is rounded down
(`step // warmup`), a delay, or a schedule that is stepped once an epoch from zero: nothing is learned in them. Programs
with several optimizers, one of which waits for the other, are left alone. The place is the function of the schedule
where one is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.course import SOURCE, at_line
from traindx_tools.program.program import Program
from traindx_tools.rules import Rule, Threshold

STEPS, SHARE = 10, 0.02

RULE = Rule(
    id="T212",
    name="rate-zero-at-first",
    title="The learning rate is zero in the first steps",
    severity=Severity.HIGH,
    sees="the learning rate at every step of the one optimizer",
    matters="these steps change nothing",
    alike=("a warm-up that begins at zero: its first step alone",),
    confirm=("print([round(schedule_function(s), 4) for s in range(0, 100, 10)])",),
    thresholds={"steps": Threshold(STEPS, "steps", "a warm-up has one"),
                "share": Threshold(SHARE, "of all steps", "fewer cost nothing")},
)


def check(program: Program, rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    if len(program.optimizers) != 1:
        return
    rates = program.optimizers[0].rates
    if len(rates) < 3 or rates[0][1] != 0 or rates[1][1] != 0 or not any(r > 0 for _, r in rates):
        return
    until, last = rates[1][0], rates[-1][0]
    if until < max(STEPS, SHARE * last):
        return
    schedule = next(iter(program.schedules), None)
    line = (schedule.made or schedule.line) if schedule is not None else program.optimizers[0].line
    yield RULE.finding(
        f"the learning rate is exactly 0 in the first {until} of {last} steps and {max(r for _, r in rates):.3g} later"
        + (f": the {schedule.kind} sets it" if schedule is not None else ""), at_line(line, 1, rank), SOURCE,
        bearing=Bearing.CAUSE, measured={"until": until, "steps": last})
