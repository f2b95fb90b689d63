"""The gradient norm sits at the bound of a clip in practically every measured step.

A norm that is the same to three digits step after step while the norm after `backward` varies is the bound of
`clip_grad_norm_`. If the gradients are hundreds of times the bound, direction is all that is left of them, and a
learning rate that fits the clipped ones hides a scale that is wrong at its source. A bound that is touched is normal.

`kind` is "while-scaled" where a GradScaler multiplies the loss and the norm times that factor is the bound: gradients
were clipped before they were unscaled, so that what the optimizer takes is thousands of times too small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse, short
from traindx_tools.rules import Rule, Threshold

ROWS, SAME, SHARE, FAR, VARIES = 12, 1e-3, 0.95, 1e3, 0.02
SCALED, BOUNDS, TINY = 16.0, (0.01, 100.0), 1e-2
NOTED = 10.0

RULE = Rule(
    id="T206",
    name="always-clipped",
    title="Gradients are clipped in every step",
    severity=Severity.LOW,
    sees="the norm of all gradients after backward and as the optimizer takes them",
    matters="what is always clipped has lost its size: warm-up, schedules and spikes no longer mean what they say",
    alike=("the first hundred steps of a transformer: clipped often, then less",),
    confirm=("Log what `clip_grad_norm_` returns: it is the norm of before.",),
    thresholds={
        "share": Threshold(SHARE, "of at least 12 measured steps at one value", "arithmetic"),
        "noted": Threshold(NOTED, "times the bound", "a decade: below it a bound is at work as it is meant to"),
        "far": Threshold(FAR, "times the bound", "three decades: the scale is wrong where it comes from"),
    },
)


def check(course: GradientCourse) -> Iterator[Finding]:
    """At most one finding."""
    total, raw = course.total, course.unclipped
    if len(total) < ROWS or not np.isfinite(total).all():
        return
    if (scaled := _while_scaled(course)) is not None:
        yield scaled
        return
    bound = float(np.median(total))
    at = np.abs(total - bound) <= SAME * bound
    known = np.isfinite(raw) & at & (raw > 0)
    if bound <= 0 or at.mean() < SHARE or known.sum() < ROWS or np.std(raw[known]) < VARIES * np.mean(raw[known]):
        return
    ratio = float(np.median(raw[known]) / bound)
    if ratio <= 1.0:
        return
    yield RULE.finding(
        f"the gradient norm is {short(bound)} in {int(at.sum())} of {len(at)} measured steps, {short(ratio)} times "
        "less than right after backward: it is clipped in every step", course.at(None), SOURCE,
        bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if ratio >= FAR else Severity.LOW if ratio >= NOTED else Severity.INFO,
        measured={"kind": "always", "bound": bound, "ratio": ratio, "share": float(at.mean())})


def _while_scaled(course: GradientCourse) -> Finding | None:
    """The norm times the loss scale is one usual bound in practically every step, and the norm itself is tiny."""
    known = np.isfinite(course.unclipped)
    if known.sum() < ROWS:
        return None
    scaled = (course.total * course.scales)[known]
    bound = float(np.median(scaled))
    at = np.abs(scaled - bound) <= 10 * SAME * bound
    usual = BOUNDS[0] <= bound <= BOUNDS[1] and float(np.median(course.total)) < TINY
    if not usual or at.mean() < SHARE or float(np.median(course.scales)) < SCALED:
        return None
    before = course.unclipped[np.isfinite(course.unclipped)]
    if not len(before) or np.std(before) < VARIES * np.mean(before):
        return None
    scale, norm = float(np.median(course.scales)), float(np.median(course.total))
    return RULE.finding(
        f"the gradient norm times the loss scale of {scale:g} is {short(bound)} in {int(at.sum())} of {len(at)} "
        f"measured steps: gradients are clipped to {short(bound)} while they are still scaled, and the optimizer takes "
        f"a norm of {short(norm)} where backward gave {short(float(np.median(before)))}", course.at(None), SOURCE,
        bearing=Bearing.CAUSE, severity=Severity.HIGH,
        measured={"kind": "while-scaled", "bound": bound, "ratio": float(np.median(before)) / norm, "scale": scale,
                  "share": float(at.mean())})
