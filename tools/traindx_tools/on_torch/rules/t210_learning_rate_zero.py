"""The learning rate of every group is exactly zero while the training goes on.

The optimizer multiplies each update by zero: gradients are computed and nothing is learned from them. A schedule that
was given fewer steps than the run has, or a factor that reaches zero, does that; so does code that writes
`param_groups` under a condition. The steps are measured now and then, so the place is given as the last measured step
with a rate above zero and the first without. A rate that reaches zero in the last twentieth of the steps is the end of
a usual schedule, and one that is zero in the first steps alone a warm-up: nothing is said of either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.course import at_line
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse
from traindx_tools.rules import Rule, Threshold

ROWS, STEPS, SHARE = 5, 50, 0.05

RULE = Rule(
    id="T210",
    name="live-learning-rate-zero",
    title="The learning rate is zero while the training goes on",
    severity=Severity.HIGH,
    sees="the largest learning rate of all parameter groups, in the measured steps of an optimizer",
    matters="every later step changes nothing: its GPU time is lost",
    alike=("the end of a schedule: the rate reaches zero with the last steps",
           "a warm-up that begins at zero: the first steps alone",
           "an optimizer that is held still on purpose while another one trains"),
    confirm=("Print optimizer.param_groups[0]['lr'] every hundred steps.",
             "Compare the total that the schedule was given with the number of optimizer steps."),
    thresholds={"rows": Threshold(ROWS, "measured steps", "fewer are a warm-up"),
                "steps": Threshold(STEPS, "optimizer steps at zero", "fewer are the end of a schedule"),
                "share": Threshold(SHARE, "of all steps", "the last twentieth may be the end of a schedule")},
)


def check(course: GradientCourse, setter: str | None = None) -> Iterator[Finding]:
    """At most one finding: zero from some step to the last measured one. `setter`: `file:line` of the schedule."""
    last = len(course.rates) - 1
    positive = np.flatnonzero(~(course.rates == 0.0))  # a rate that is kept on a device is nan: unknown
    first = int(positive[-1]) + 1 if len(positive) else 0
    rows = last - first + 1
    if rows < 2 or (first == 0 and rows < ROWS) or not np.nan_to_num(course.total[first:]).any():
        return
    start, end = course.steps[first], course.steps[last]
    if first and end - start < max(STEPS, SHARE * end):
        return
    since = f"from a step between {course.steps[first - 1] + 1} and {start} on" if first else "in all measured steps"
    yield RULE.finding(
        f"the learning rate is exactly 0 {since}, up to step {end}; gradients arrive and change nothing",
        replace(course.at(None, first), **_code(setter)), SOURCE, bearing=Bearing.CAUSE,
        measured={"onset": "later" if first else "from-start", "step": start, "end_step": end,
                  "before": float(course.rates[first - 1]) if first else None})


def _code(line: str | None) -> dict[str, Any]:
    where = at_line(line, 0)
    return {"file": where.file, "line": where.line} if where.file is not None else {}
