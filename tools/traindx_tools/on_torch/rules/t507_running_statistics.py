"""The running statistics of a BatchNorm do not describe its batches.

In train mode the batch's own statistics are used, in eval mode the running ones. Where running mean and batch mean lie
two standard deviations apart in most channels, or the variances a factor of ten, late in the run or whenever the model
is evaluated, the model that is evaluated is another one: a momentum that is too small for the length of the run,
batches of several domains in one layer, statistics that are updated by other forward passes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses, NormCourse
from traindx_tools.rules import Rule, Threshold

FAR, LOG_RATIO, STEPS, VALUES, AFTER, AFTER_EVALUATED = 2.0, float(np.log(10.0)), 4, 32, 50, 8

RULE = Rule(
    id="T507",
    name="running-statistics",
    title="Running statistics do not describe the batches",
    severity=Severity.HIGH,
    sees="running mean and variance of BatchNorm layers against those of the batch, in evaluation and late in training",
    matters="training is fine and evaluation is not: eval mode uses statistics that fit no batch",
    alike=("the first fifty steps: the running statistics are still on their way", "batches of a few samples: noise"),
    confirm=("Evaluate the same batch in train mode and in eval mode and compare the losses.",
             "Reset the statistics and run 100 batches in train mode without gradients: evaluation returns."),
    thresholds={
        "far": Threshold(FAR, "standard deviations, median of the channels", "a batch of 32 strays by 0.2"),
        "ratio": Threshold(10.0, "times, variances", "arithmetic"),
        "after_evaluated": Threshold(AFTER_EVALUATED, "steps, for evaluations", "the first ones come early on purpose"),
        "after": Threshold(AFTER, "steps", "with momentum 0.1 what was there before weighs 0.5 %"),
    },
)


def check(seen: Courses) -> Iterator[Finding]:
    """One finding for all such layers."""
    bad = [c for c in seen.norms if _bad(c)]
    if not bad:
        return
    c = max(bad, key=lambda n: float(np.median(n.distance)))
    distance, ratio = (float(np.median(v[_late(c)])) for v in (c.distance, c.log_ratio))
    when = "evaluations" if c.evaluated else f"steps after step {AFTER}"
    yield RULE.finding(
        f"the running mean of {c.path} is {distance:.3g} standard deviations from the batch's and its variance a "
        f"factor of {np.exp(ratio):.3g} (medians over the channels and {int(_late(c).sum())} sampled {when}; momentum "
        f"{c.momentum}); {len({n.path for n in bad})} of {len({n.path for n in seen.norms})} layers are like that",
        Location(module=c.path, step=float(c.steps[0]), end_step=float(c.steps[-1]), rank=c.rank), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"distance": distance, "ratio": float(np.exp(ratio)), "module": c.path, "layers": len(bad),
                  "momentum": c.momentum, "evaluated": c.evaluated})


def _late(c: NormCourse) -> np.ndarray:
    return np.array(c.steps) > (AFTER_EVALUATED if c.evaluated else AFTER)


def _bad(c: NormCourse) -> bool:
    late = _late(c)
    if late.sum() < STEPS or c.values < VALUES:
        return False
    return bool(np.median(c.distance[late]) > FAR or np.median(c.log_ratio[late]) > LOG_RATIO)
