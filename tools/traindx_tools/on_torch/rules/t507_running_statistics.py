"""The running statistics of a BatchNorm do not describe its batches.

In train mode the batch's own statistics are used, in eval mode the running ones. Where running mean and batch mean lie
two standard deviations apart in most channels, or the variances a factor of ten, late in the run or whenever the model
is evaluated, the model that is evaluated is another one: a momentum that is too small for the length of the run,
batches of several domains in one layer, statistics that are updated by other forward passes.

A layer that is in eval mode while its model trains is frozen on purpose, and so is a model that is only asked: their
statistics came with the weights. They are told (`kind`: "given") from far larger differences on, the first layer alone:
what it gets was made by layers before it, whose statistics fit. In an evaluation the running statistics are blamed only
where they do not fit the training batches either; where they do, see T508.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses
from traindx_tools.on_torch.rules.norm_statistics import (
    AFTER,
    AFTER_EVALUATED,
    FAR,
    GIVEN_FAR,
    Unfit,
    given_unfit,
    late,
    unfit,
)
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T507",
    name="running-statistics",
    title="Running statistics do not describe the batches",
    severity=Severity.HIGH,
    sees="running mean and variance of BatchNorm layers against those of the batch, in evaluation and late in training",
    matters="training is fine and evaluation is not: eval mode uses statistics that fit no batch",
    alike=("the first fifty steps: the running statistics are still on their way", "batches of a few samples: noise",
           "evaluation inputs that are scaled otherwise (T508): the running statistics fit the training batches"),
    confirm=("Evaluate the same training batch in train mode and in eval mode and compare the losses.",
             "Reset the statistics and run 100 batches in train mode without gradients: evaluation returns."),
    thresholds={
        "far": Threshold(FAR, "standard deviations, median of the channels", "a batch of 32 strays by 0.2"),
        "given": Threshold(GIVEN_FAR, "standard deviations, of statistics that were loaded and stay (or 25 times the "
                           "variance)", "another domain of pictures moves them by less than two"),
        "ratio": Threshold(10.0, "times, variances", "arithmetic"),
        "after_evaluated": Threshold(AFTER_EVALUATED, "steps, for evaluations", "the first ones come early on purpose"),
        "after": Threshold(AFTER, "steps", "with momentum 0.1 what was there before weighs 0.5 %"),
    },
)


def check(seen: Courses) -> Iterator[Finding]:
    """One finding for all such layers; nothing where the inputs explain them; one for those that were loaded."""
    yield from _given(seen)
    found = unfit(seen)
    explained = any(u.of_inputs for u in found)
    bad = [u for u in found if not (explained and u.fits_training is True)]
    if not bad:
        return
    u = max(bad, key=lambda u: (u.fits_training is False, u.distance))
    c = u.course
    when = "evaluations" if c.evaluated else f"steps after step {AFTER}"
    yield RULE.finding(
        f"the running mean of {c.path} is {u.distance:.3g} standard deviations from the batch's and its variance a "
        f"factor of {np.exp(u.log_ratio):.3g} (medians over the channels and {int(late(c).sum())} sampled {when}; "
        f"momentum {c.momentum}); {len({n.course.path for n in bad})} of {len({n.path for n in seen.norms})} layers "
        f"are like that{_training(u)}",
        Location(module=c.path, step=float(c.steps[0]), end_step=float(c.steps[-1]), rank=c.rank), SOURCE,
        bearing=Bearing.CAUSE if u.fits_training is False else Bearing.SIGN,
        measured={"distance": u.distance, "ratio": float(np.exp(u.log_ratio)), "module": c.path, "layers": len(bad),
                  "momentum": c.momentum, "evaluated": c.evaluated, "fits_training": u.fits_training})


def _given(seen: Courses) -> Iterator[Finding]:
    found = given_unfit(seen)
    if found is None:
        return
    u, given = found
    c, before = u.course, [g.path for g in given]
    first = before.index(c.path)
    fit = f"the {first} normalisation layers before it fit" if first else "it is the first normalisation layer"
    yield RULE.finding(
        f"the running statistics of {c.path}, which came with the weights and stay as they are, are not those of what "
        f"it gets in this run: running mean and batch mean are {u.distance:.3g} standard deviations apart and the "
        f"variances a factor of {np.exp(u.log_ratio):.3g} (medians over the channels and {len(c.steps)} calls); {fit}: "
        f"{'they belong to other inputs of this layer (another scale or data set)' if first else _inputs()}",
        Location(module=c.path, step=float(c.steps[0]), end_step=float(c.steps[-1]), rank=c.rank), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"kind": "given", "distance": u.distance, "ratio": float(np.exp(u.log_ratio)), "module": c.path,
                  "layers": 1, "momentum": c.momentum, "evaluated": True, "before": first})


def _inputs() -> str:
    return "the buffers belong to inputs of another scale (such as 0..255 for 0..1) or to another data set"


def _training(u: Unfit) -> str:
    if not u.course.evaluated:
        return ""
    if u.fits_training is None:
        return "; too few training batches were looked at to say whether they fit those"
    if u.fits_training:
        return "; they fit the training batches in train mode, and a module before acts otherwise in eval mode"
    return f"; from training batches they are {u.training_distance:.3g} standard deviations away"
