"""Gradients vanish on the way to the first layers.

In a stack of repeated blocks the norm of the first block is a thousandth of the last one's and below 1e-4, step after
step; or a module gets a gradient below 1e-8 while another of the same step is alive. Only weights of two or more
dimensions are judged: a bias before a normalisation, or of attention keys, has no gradient by construction. A run
whose loss has fallen to next to nothing has converged and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse, short
from traindx_tools.rules import Rule, Threshold

DEAD, ALIVE = 1e-8, 1e-4
DEPTH_RATIO, DEPTH_SMALL = 1e-3, 1e-4
SHARE = 0.8

RULE = Rule(
    id="T202",
    name="live-gradient-vanishing",
    title="Gradients vanish with depth",
    severity=Severity.HIGH,
    sees="the 2-norm of the gradients of weights by module and by repeated block, over the measured steps",
    matters="layers behind a vanishing gradient stay at their initialisation, however long the run lasts",
    alike=("exactly zero: a cut graph or dead units, see T203", "a loss that is almost zero: everything is small",
           "a zero-initialised branch (LoRA, residual gates): small in the first steps only"),
    confirm=("Print standard deviation and saturated share of the activations, block by block.",
             "Add residual connections or a normalisation before each block: the ratio returns above 0.1."),
    thresholds={
        "dead": Threshold(DEAD, "2-norm of a module", "published debugging guides"),
        "alive": Threshold(ALIVE, "2-norm of the loudest module", "arithmetic: four decades above"),
        "depth_ratio": Threshold(DEPTH_RATIO, "first block / last block, the first below 1e-4", "AUTOTRAINER"),
        "share": Threshold(SHARE, "of the measured steps", "a gate that opens does so within a few steps"),
    },
)


def check(course: GradientCourse) -> Iterator[Finding]:
    """At most one finding: by depth, else by module."""
    yield from _by_depth(course) or _by_module(course)


def _by_depth(course: GradientCourse) -> list[Finding]:
    if not course.blocks:
        return []
    first, last = course.blocks[0], course.blocks[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = first[1] / last[1]
    low = (ratio < DEPTH_RATIO) & (first[1] < DEPTH_SMALL) & (first[1] > 0) & (last[1] > DEAD)
    if not len(low) or low.mean() < SHARE:
        return []
    typical = float(np.median(ratio[low]))
    falling = sum(a < b for (_, x), (_, y) in zip(course.blocks, course.blocks[1:], strict=False)
                  for a, b in [(np.median(x), np.median(y))])
    steady = falling >= 0.7 * (len(course.blocks) - 1)
    if not steady:
        return []
    return [RULE.finding(
        f"the gradient of {first[0]} is {short(float(np.median(first[1])))} and of {last[0]} "
        f"{short(float(np.median(last[1])))}: it falls by {short(1 / typical)} over {len(course.blocks)} blocks, in "
        f"{int(low.sum())} of {len(low)} measured steps", course.at(first[0]), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": "depth", "module": first[0], "ratio": typical, "blocks": len(course.blocks),
                  "norm": float(np.median(first[1])), "scope": "module"})]


def _by_module(course: GradientCourse) -> list[Finding]:
    if not course.modules:
        return []
    norms = np.nan_to_num(course.norms, nan=-1.0)
    loud = norms.max(axis=1, keepdims=True) > ALIVE
    low = (norms > 0) & (norms < DEAD) & loud
    share = low.mean(axis=0)
    dead = [i for i in range(len(course.modules)) if share[i] >= SHARE]
    if not dead:
        return []
    i = dead[0]
    value = float(np.median(norms[:, i][low[:, i]]))
    return [RULE.finding(
        f"the gradient of {course.modules[i]} is {short(value)} in {int(low[:, i].sum())} of {len(low)} measured steps "
        f"while another module's is above {ALIVE:g}; {len(dead)} of {len(course.modules)} modules are like that",
        course.at(course.modules[i]), SOURCE, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
        measured={"kind": "module", "module": course.modules[i], "norm": value, "modules": len(dead),
                  "scope": "module"})]
