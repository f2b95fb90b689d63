"""What is evaluated is another kind of input than what was trained on.

A BatchNorm's running statistics are a record of the training inputs. In a layer that the same batch reaches in both
modes (no dropout and no other BatchNorm before it) they fit the training batches and not the evaluated ones: the layer
is in order, and the inputs are not of one kind. A normalisation that one of the two sets lacks, another one, another
range, or data of another origin: the numbers say that they differ, not why.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses
from traindx_tools.on_torch.rules.norm_statistics import APART, FAR, FITS, late, unfit
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T508",
    name="evaluation-inputs",
    title="Evaluation inputs are of another kind than training inputs",
    severity=Severity.HIGH,
    sees="running mean and variance of the first BatchNorm layer against training batches and against evaluated ones",
    matters="the model is judged on inputs that it was never trained on: its score says nothing of what it learned",
    alike=("statistics that fit no batch at all (T507): there the training batches are far away as well",
           "an evaluation on another domain on purpose, as in domain adaptation"),
    confirm=("Print mean and standard deviation of one training and one evaluation batch as the model gets them.",
             "Evaluate on training batches: the score is as good as in training."),
    thresholds={
        "far": Threshold(FAR, "standard deviations, median of the channels", "as for T507"),
        "fits": Threshold(FITS, "of what counts as far, for training batches", "a batch of 32 strays by 0.2"),
        "apart": Threshold(APART, "x the distance of training batches", "beyond what batches differ by"),
    },
)


def check(seen: Courses) -> Iterator[Finding]:
    """One finding, for the layer that is furthest away."""
    found = [u for u in unfit(seen) if u.of_inputs]
    if not found:
        return
    u = max(found, key=lambda u: u.distance)
    c = u.course
    yield RULE.finding(
        f"what the layer '{c.path}' gets in evaluation has a mean {u.distance:.3g} standard deviations from the "
        f"running mean and a "
        f"variance other by a factor of {np.exp(u.log_ratio):.3g} ({int(late(c).sum())} sampled evaluations); training "
        f"batches are {u.training_distance:.2g} standard deviations away, so the statistics are right and the inputs "
        "differ", Location(module=c.path, step=float(c.steps[0]), end_step=float(c.steps[-1]), rank=c.rank), SOURCE,
        bearing=Bearing.CAUSE,
        measured={"distance": u.distance, "ratio": float(np.exp(u.log_ratio)), "module": c.path,
                  "training_distance": u.training_distance})
