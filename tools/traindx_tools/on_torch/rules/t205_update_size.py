"""Updates have the wrong size for the weights that they change.

The norm of one update over the norm of the weights says how fast a layer moves: about 1e-3 a step is usual. Above one
half, step after step, a layer is replaced rather than trained; below 1e-7, and never above it, it stands still. Medians
over the weights of two or more dimensions are judged: a layer that starts at zero has no ratio yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.movement import SOURCE, Movement
from traindx_tools.rules import Rule, Threshold

LARGE, HUGE, SMALL, STEPS, GROWTH = 0.5, 2.0, 1e-7, 8, 10.0

RULE = Rule(
    id="T205",
    name="update-size",
    title="Updates are far too large or far too small for the weights",
    severity=Severity.HIGH,
    sees="norm of the update over norm of the weights, from sampled values, medians over the measured steps",
    matters="too large: nothing that was learned survives; too small: nothing is learned in the planned time",
    alike=("the first steps of a layer that starts at zero", "the end of a schedule: small on purpose"),
    confirm=("Divide or multiply the learning rate by 30 and compare the first hundred steps.",),
    thresholds={
        "large": Threshold(LARGE, "update / weight a step", "usual is 1e-3; half of a layer a step is replacement"),
        "small": Threshold(SMALL, "update / weight a step, the largest seen", "1e7 steps to move once; "
                           "sagemaker-debugger uses 1e-8"),
        "growth": Threshold(GROWTH, "times, with a step above 1", "the weights are replaced, then only grow"),
        "steps": Threshold(STEPS, "measured steps", "the first ones are not typical"),
    },
)


def check(movements: Sequence[Movement]) -> Iterator[Finding]:
    """At most one finding for the model."""
    able = [m for m in movements if m.ndim >= 2 and m.steps >= STEPS and np.isfinite(m.ratio)]
    if not able:
        return
    typical = float(np.median([m.ratio for m in able]))
    largest = float(np.median([m.largest_ratio for m in able]))
    growth = float(np.median([m.growth for m in able]))
    large = typical > LARGE or (growth > GROWTH and largest > 1.0)
    kind = "large" if large else "small" if 0 < largest < SMALL else None
    if kind is None:
        return
    worst = (max if kind == "large" else min)(able, key=lambda m: m.ratio)
    lr = max(m.lr for m in able)
    where = Location(module=worst.path, step=float(worst.first_step), end_step=float(worst.last_step), rank=worst.rank)
    words = (f"a step changes the weights by {typical:.3g} of their size, at most by {largest:.3g}, and they grew "
             f"{growth:.3g} times") if kind == "large" else (
        f"no measured step changes the weights by more than {largest:.3g} of their size")
    yield RULE.finding(
        f"{words} (median over {len(able)} weights, learning rate {lr:.3g}); {worst.path} is at {worst.ratio:.3g}",
        where, SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.HIGH if typical > HUGE or growth > GROWTH or kind == "small" else Severity.MEDIUM,
        measured={"kind": kind, "ratio": typical, "lr": lr, "module": worst.path})
