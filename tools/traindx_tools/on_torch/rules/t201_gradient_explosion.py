"""The gradients of this training explode, seen where the optimizer takes them.

The norm over the measured steps rises a hundredfold over its own median of before and passes 1000, or it is there and
stays there while the loss does not fall. The module whose norm grew most is named. A loss that is a sum, and not a
mean, has large gradients from the first step on that do not grow: that is reported as low, with the numbers.

What is nan or inf, and what comes after it, is not judged here: see T101. A norm that rises while a clip holds it at a
bound is seen in the gradients of before the clip.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse, short
from traindx_tools.rules import Rule, Threshold

LARGE, GROWTH, ROWS = 1e3, 100.0, 4

RULE = Rule(
    id="T201",
    name="live-gradient-explosion",
    title="Gradients explode",
    severity=Severity.HIGH,
    sees="the 2-norm of the gradients before each measured optimizer step, by module, and before any clip",
    matters="one update of that size throws away what was learned, or ends in inf and NaN",
    alike=("a loss summed over a large batch: large from the start, constant, and it falls",
           "the first steps of a fine-tune with a new head: large once, then small"),
    confirm=("traindx diagnose PATH --run CMD", "Clip at 1.0 or divide the learning rate by ten: the course ends."),
    thresholds={
        "large": Threshold(LARGE, "2-norm", "published debugging guides: above 1e3 gradients explode"),
        "growth": Threshold(GROWTH, "times the median of the measured steps before", "two decades are no noise"),
    },
)


def check(course: GradientCourse) -> Iterator[Finding]:
    """At most one finding."""
    total = np.where(np.isfinite(course.unclipped) & (course.unclipped > course.total), course.unclipped, course.total)
    bad = np.flatnonzero(~np.isfinite(total))
    finite = total[: bad[0]] if len(bad) else total
    if len(finite) < ROWS:
        return
    k = int(np.argmax(finite))
    before = float(np.median(finite[:max(3, k // 2)])) if k >= 3 else float("nan")
    grew = k >= 3 and before > 0 and finite[k] > LARGE and finite[k] > GROWTH * before
    stays = float(np.median(finite)) > LARGE
    if not grew and not stays:
        return
    lasting = grew and (k >= len(finite) - 3 or float(np.median(finite[k:])) > GROWTH * before / 10)
    if grew and not lasting and not stays:
        return
    module = _loudest(course, k)
    falls = _falls(course)
    severity = Severity.HIGH if grew and lasting else Severity.LOW if falls else Severity.MEDIUM
    text = (f"the norm of the gradients rose from {short(before)} to {short(finite[k])} at step {course.steps[k]}"
            if grew else f"the norm of the gradients is {short(float(np.median(finite)))} (median of {len(finite)} "
            f"measured steps)")
    named = f"; most of it is in {module}" if module else ""
    yield RULE.finding(
        text + named, course.at(module, 0 if not grew else max(0, k - 1), k), SOURCE, bearing=Bearing.SIGN,
        severity=severity, measured={"kind": "ramp" if grew else "large", "onset": "ramp" if grew else "from-start",
                                     "peak": float(finite[k]), "before": before, "module": module})


def _loudest(course: GradientCourse, k: int) -> str | None:
    row = course.norms[k]
    if not len(row) or np.isnan(row).all():
        return None
    return course.modules[int(np.nanargmax(np.nan_to_num(row, nan=-1.0, posinf=1e38)))]


def _falls(course: GradientCourse) -> bool:
    loss = course.loss[np.isfinite(course.loss)]
    if len(loss) < 6:
        return False
    third = len(loss) // 3
    return bool(np.median(loss[-third:]) < 0.95 * np.median(loss[:third]))
