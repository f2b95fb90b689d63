"""Updates are rounded away: the weights are stored in 16 bits and a step is smaller than half of their last place.

A bfloat16 value of 0.1 has neighbours 0.0005 away: an update below 0.00024 leaves it as it is, each time, however many
steps follow. The rule compares sampled values that have a gradient bit by bit over the measured steps. Weights that are
nearly zero still move, so the loss falls a little and stops. Optimizers that keep a master copy in float32, round
stochastically or carry the rest along (Kahan) move all values after some steps and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.movement import SOURCE, Movement, listed
from traindx_tools.rules import Rule, Threshold

STILL, STEP_STILL, STEPS, SHARE = 0.5, 0.5, 8, 0.5

RULE = Rule(
    id="T304",
    name="update-rounded-away",
    title="Updates are rounded away by the weights' dtype",
    severity=Severity.CRITICAL,
    sees="sampled values of 16-bit weights before and after the optimizer's steps, with their gradients",
    matters="most weights never change although gradients and learning rate are sane",
    alike=("autocast with float32 weights: the weights are float32, nothing is rounded",
           "the end of a schedule: updates are small on purpose (the largest learning rate seen is the one stated)"),
    confirm=("print(next(model.parameters()).dtype)", "Keep the weights in float32 under autocast: they move."),
    thresholds={
        "still": Threshold(STILL, "of the sampled values unchanged from first to last measured step", "arithmetic"),
        "steps": Threshold(STEPS, "measured steps", "a sum of updates may need some to reach a neighbour"),
    },
)


def check(movements: Sequence[Movement]) -> Iterator[Finding]:
    """One finding for all such weights."""
    able = [m for m in movements if m.half and m.trainable and m.ndim >= 1 and m.steps >= STEPS and m.pushed >= 8]
    stuck = [m for m in able if m.still >= STILL and m.step_still >= STEP_STILL]
    if not stuck or sum(m.numel for m in stuck) < SHARE * sum(m.numel for m in able):
        return
    worst = max(stuck, key=lambda m: m.numel)
    share = float(np.average([m.still for m in stuck], weights=[m.numel for m in stuck]))
    yield RULE.finding(
        f"{share:.0%} of the sampled {worst.dtype} values of {listed([m.path for m in stuck], 3)} are bit by bit the "
        f"same at step {worst.last_step} as at step {worst.first_step} although each has a gradient: at a size of "
        f"{worst.magnitude:.2g} an update below half a unit in the last place ({worst.resolution:.1e}) is rounded "
        f"away, and the learning rate is {worst.lr:.1e}", worst.at(), SOURCE, bearing=Bearing.CAUSE,
        measured={"dtype": worst.dtype, "still": share, "module": worst.path, "parameters": len(stuck),
                  "of": len(able), "resolution": worst.resolution, "lr": worst.lr, "magnitude": worst.magnitude})
