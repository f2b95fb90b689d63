"""Gradients of the modules of one model differ by orders of magnitude, step after step.

The norm of each module's gradient is divided by the norm of its weights, which makes a small layer comparable with a
large one; embeddings are left out, since only the rows of a batch have a gradient. With an optimizer that divides by
the gradient's size (Adam) that is no fault in itself and is reported as a remark (INFO); with plain SGD the quiet
module hardly moves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse, medians, short
from traindx_tools.rules import Rule, Threshold

RATIO, FAR, UPDATE = 100.0, 1e4, 100.0

RULE = Rule(
    id="T204",
    name="live-gradient-imbalance",
    title="One module's gradients are a hundred times another's",
    severity=Severity.LOW,
    sees="norms of gradients relative to the norms of the weights, by module, medians over the measured steps",
    matters="one learning rate cannot fit both: the quiet module hardly moves, or the loud one diverges first",
    alike=("a new head on a trained backbone: the head is louder, on purpose",
           "a zero-initialised branch in its first steps"),
    confirm=("Print gradient norm over weight norm by module.",),
    thresholds={
        "ratio": Threshold(RATIO, "times, loudest over quietest", "published debugging guides"),
        "far": Threshold(FAR, "times, with an optimizer that does not adapt", "four decades: the quiet one is still"),
    },
)


def check(course: GradientCourse) -> Iterator[Finding]:
    """At most one finding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = medians(np.where(course.weights > 0, course.norms / course.weights, np.nan))
    known = [i for i in range(len(relative)) if np.isfinite(relative[i]) and relative[i] > 0
             and course.modules[i] not in course.tables]
    if len(known) < 2:
        return
    loud, quiet = max(known, key=lambda i: relative[i]), min(known, key=lambda i: relative[i])
    ratio = float(relative[loud] / relative[quiet])
    if ratio < RATIO:
        return
    severe = ratio >= FAR and not course.adaptive
    yield RULE.finding(
        f"relative to its weights the gradient of {course.modules[loud]} is {short(ratio)} times that of "
        f"{course.modules[quiet]} (medians over {len(course.steps)} measured steps, steps {course.steps[0]} to "
        f"{course.steps[-1]})", course.at(course.modules[loud]), SOURCE, bearing=Bearing.SIGN,
        severity=Severity.INFO if course.adaptive else Severity.MEDIUM if severe else Severity.LOW,
        measured={"ratio": ratio, "module": course.modules[loud], "quiet": course.modules[quiet],
                  "adaptive": course.adaptive})
