"""The model is trained in eval mode.

`kind`: "never-undone" where training began in train mode and, from some step on, every training call has the model and
all its BatchNorm and dropout layers in eval mode: an evaluation switched it over and nobody switched it back.
"statistics" where a BatchNorm trains in eval mode with the statistics it was born with, mean 0 and variance 1: it
normalises nothing. A model that is fine-tuned in eval mode from the start, with measured statistics, is reported as
low: that can be meant. Single layers in eval mode (frozen BatchNorm) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_torch.rules.modes import ModeCourse
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: membership"
CALLS = 5

RULE = Rule(
    id="T308",
    name="trained-in-eval-mode",
    title="The model is trained in eval mode",
    severity=Severity.HIGH,
    sees="the mode of BatchNorm and dropout layers at each training call",
    matters="no dropout and no batch statistics from there on: another model is trained than the one that was begun",
    alike=("frozen BatchNorm layers in a model that is in train mode", "fine-tuning in eval mode on purpose"),
    confirm=("print(model.training, [m.training for m in model.modules()].count(False))  # before the backward pass",),
    thresholds={"calls": Threshold(CALLS, "training calls in a row", "one may be meant, a run of them stays")},
)


def check(course: ModeCourse) -> Iterator[Finding]:
    """At most one finding a model."""
    measured: dict[str, Value] = {"layers": len(course.layers), "batch_norms": course.batch_norms,
                                  "module": course.path, "calls": course.last_in_eval}
    if course.trained_in_train >= 1 and course.last_in_eval >= CALLS:
        yield RULE.finding(
            f"{course.path} was trained in train mode in {course.trained_in_train} calls and in eval mode in the last "
            f"{course.last_in_eval}, from step {course.first_eval_step} on: {len(course.layers)} layers "
            f"({course.layers[0]}, ...) are in eval mode while it is trained",
            course.at(step=course.first_eval_step), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "never-undone", **measured})
    elif course.unmeasured is not None and course.trained_in_eval >= CALLS:
        yield RULE.finding(
            f"{course.unmeasured} is in eval mode in {course.trained_in_eval} training calls and normalises by the "
            f"statistics it was made with (mean 0, variance 1)", course.at(course.unmeasured), SOURCE,
            bearing=Bearing.CAUSE, measured={"kind": "statistics", **measured})
    elif course.trained_in_train == 0 and course.last_in_eval >= CALLS:
        yield RULE.finding(
            f"{course.path} is in eval mode in all {course.last_in_eval} training calls: {len(course.layers)} layers "
            f"({course.layers[0]}, ...) do nothing or use fixed statistics", course.at(), SOURCE,
            bearing=Bearing.CAUSE, severity=Severity.LOW, measured={"kind": "from-start", **measured})
