"""The training loss stays far above the validation loss of the same name while both fall: a remark.

The two do not measure the same. Mixed inputs, smoothed labels, dropout and strong augmentation make the training loss
the harder one, and are healthy; a training loss that is normalised over another axis, summed where it should be
averaged, or scaled, looks the same. A log cannot tell them apart, so it is never a fault by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import curve
from traindx_tools.on_logs.curves.learning import (
    aligned,
    held_out_loss,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

BELOW, FALLEN, FEWEST = 0.5, 0.9, 4

RULE = Rule(
    id="L225",
    name="training-above-validation",
    title="The training loss stays far above the validation loss",
    severity=Severity.INFO,
    sees="training and validation loss of one name, evaluation by evaluation",
    matters="The two are not the same quantity: where nothing in training explains it, one of them is computed wrong.",
    alike=("Mixed inputs (mix-up, CutMix), label smoothing, dropout, strong augmentation: on in training alone.",
           "A mean over an epoch in which the model still improved: it fades within a few epochs."),
    confirm=("Compute the validation loss on one training batch in evaluation mode, with the line of the training.",
             "Compare the first loss with ln(classes) and with ln(batch size)."),
    thresholds={"below": Threshold(BELOW, "validation / training", "in the last three quarters of the evaluations"),
                "fallen": Threshold(FALLEN, "of the first evaluation", "both losses learn")},
)


def check(run: Run) -> Iterator[Finding]:
    """At most one remark."""
    train, held_out = main_loss(run), held_out_loss(run)
    if train is None or held_out is None or train.name != held_out.name or is_reinforcement(run) or is_adversarial(run):
        return
    t, h = curve(train), curve(held_out)
    if len(t) < FEWEST or len(h) < FEWEST or t.values.min() <= 0.0 or h.values.min() <= 0.0:
        return
    beside = aligned(t, h)
    ratios = h.values / np.maximum(beside, 1e-30)
    falls = h.values[-1] < FALLEN * h.values[0] and beside[-1] < FALLEN * beside[0]
    if not falls or float(ratios.max()) >= 1.0 or float(ratios[len(ratios) // 4:].max()) > BELOW:
        return
    start, end = h.where(0, len(h) - 1)
    yield RULE.finding(
        f"training loss ends at {number(float(beside[-1]))}, {number(1 / float(ratios[-1]))} times the "
        f"{held_out.group} loss of {number(float(h.values[-1]))}, and is above it at every evaluation: the two do not "
        "measure the same. Mixed inputs, smoothed labels and dropout do so, and so does a training loss that is summed "
        "or normalised otherwise", held_out.at(start, end), held_out.source, bearing=Bearing.COMPANION,
        measured={"train_end": float(beside[-1]), "val_end": float(h.values[-1]), "ratio_end": float(ratios[-1]),
                  "ratio_max": float(ratios.max()), "records": len(h)})
