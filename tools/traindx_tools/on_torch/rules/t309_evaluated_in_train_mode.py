"""The model is evaluated in train mode.

Runs of calls without gradients, with no backward pass between them, find BatchNorm or dropout layers of a model that
is being trained in train mode: dropout is random there, and BatchNorm uses the statistics of the evaluation batch and
mixes them into its own. Single calls (samples of a generator, a discriminator's turn) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.modes import ModeCourse
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: membership"
RUN, CALLS = 2, 4

RULE = Rule(
    id="T309",
    name="evaluated-in-train-mode",
    title="The model is evaluated in train mode",
    severity=Severity.HIGH,
    sees="the mode of BatchNorm and dropout layers at calls without gradients, between training steps",
    matters="evaluation is noisy or uses the wrong statistics, and running statistics take in evaluation data",
    alike=("samples that a generator draws now and then", "statistics measured again on purpose after an average",
           "Monte Carlo dropout"),
    confirm=("print(model.training)  # inside the evaluation loop",),
    thresholds={"calls": Threshold(CALLS, "calls without gradients, in runs of two and more", "single: samples")},
)


def check(course: ModeCourse) -> Iterator[Finding]:
    """At most one finding a model."""
    if course.evaluated_in_train < CALLS or course.longest_run < RUN or course.trained_in_train < 2:
        return
    kind = "batchnorm" if course.batch_norms else "dropout"
    yield RULE.finding(
        f"{course.path} is called without gradients in train mode {course.evaluated_in_train} times, up to "
        f"{course.longest_run} times in a row ({course.evaluated_in_eval} times in eval mode): {len(course.layers)} "
        f"layers ({course.layers[0]}, ...) act as in training", course.at(), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.HIGH if kind == "batchnorm" else Severity.MEDIUM,
        measured={"kind": kind, "calls": course.evaluated_in_train, "eval_calls": course.evaluated_in_eval,
                  "module": course.path})
