"""Training is perfect, evaluation is at chance and never was anywhere else.

Over-fitting passes through a better place first: held-out accuracy rises above chance before it stalls. Here it does
not move at all. What the model learned does not exist in the evaluation data. Either the two see different tasks
(inputs drawn from another distribution, labels mapped in another order, a random key used twice so that training only
ever sees a special case, a leak of the label into the training input) or the evaluation runs another model (untrained
copy, weights not loaded, wrong mode).

Needs: training accuracy of 0.9 or more (or a training loss that fell by nine tenths), held-out accuracy that stays
within 5 points of where it was first measured, at or below 35 % of training accuracy, or within reach of 1/C where
the number of classes is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, drop, ending, head, median, noise, spread, tail, trend
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    class_counts,
    held_out_loss,
    is_reinforcement,
    main_loss,
    number,
    percent,
    span,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

TRAIN_ACCURACY = 0.9
TRAIN_FALL = 0.9
SHARE = 0.35
STILL = 0.05
NEAR_CHANCE = 1.3

RULE = Rule(
    id="L208",
    name="train-good-eval-chance",
    title="Training is perfect, evaluation stays at chance",
    severity=Severity.HIGH,
    sees="training accuracy (or loss) and held-out accuracy",
    matters="The model has learned something that the evaluation data does not contain.",
    alike=(
        "Over-fitting: held-out accuracy rises above chance before it stalls.",
        "A normalisation in evaluation mode with wrong statistics: training data in evaluation mode fails as well.",
        "Labels of the training set shuffled: memorised, nothing general in it.",
    ),
    confirm=(
        "Evaluate on the training data with the evaluation code: good means the data differ, bad means the code "
        "differs.",
        "Print ten samples of both sets: inputs, labels, and how often each label occurs.",
    ),
    thresholds={
        "train_accuracy": Threshold(TRAIN_ACCURACY, "fraction", "training succeeded"),
        "train_fall": Threshold(TRAIN_FALL, "relative fall of the training loss", "where no accuracy is logged"),
        "share": Threshold(SHARE, "of training accuracy", "over-fitted models stay above it"),
        "still": Threshold(STILL, "fraction", "held-out accuracy that moves less has not learned"),
        "near_chance": Threshold(NEAR_CHANCE, "times 1/C", "where the number of classes is known"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """A finding where training succeeded and held-out accuracy never left chance."""
    held_out = accuracy(run, "validation", "test")
    if held_out is None or len(held_out) < 3 or is_reinforcement(run):
        return
    train = accuracy(run, "train")
    loss = main_loss(run)
    reached = tail(train.values) if train is not None else None
    fell = drop(curve(loss).values) if loss is not None and len(curve(loss)) >= 3 else 0.0
    level = tail(held_out.values)
    if not (reached >= TRAIN_ACCURACY if reached is not None else fell >= TRAIN_FALL) or not _still(held_out):
        return
    chance = _chance(run, level)
    if chance is None and level > SHARE * (reached or 1.0):
        return
    yield _finding(run, held_out, reached, fell, chance)


def _still(acc: Curve) -> bool:
    moved = abs(tail(acc.values) - head(acc.values))
    if trend(acc.values) > 2.0 and moved > 0.02:
        return False
    return moved <= STILL and spread(acc.values) <= 2 * STILL + 4.0 * noise(acc.values)


def _chance(run: Run, level: float) -> float | None:
    """1 / C where the class count is stated and the level is within its reach."""
    chances = [1.0 / k.count for k in class_counts(run)]
    return next((chance for chance in chances if level <= min(NEAR_CHANCE * chance, chance + STILL)), None)


def _finding(run: Run, held_out: Curve, reached: float | None, fell: float, chance: float | None) -> Finding:
    start, end = held_out.where(0, len(held_out) - 1)
    level = tail(held_out.values)
    trained = f"training accuracy reaches {number(reached)}" if reached is not None else (
        f"training loss falls by {percent(fell)}")
    loss = held_out_loss(run)
    losses = curve(loss).values if loss is not None else None
    said = f", {loss} goes from {number(float(losses[0]))} to {number(float(losses[-1]))}" if (
        losses is not None and len(losses) >= 2) else ""
    guess = f" (chance is {percent(chance)})" if chance is not None else ""
    return RULE.finding(
        f"{trained}, yet {held_out.series} stays at {ending(held_out)}{guess} "
        f"{span(held_out.series, start, end)}{said}",
        held_out.series.at(start, end), held_out.series.source, bearing=Bearing.SIGN,
        measured={"train_accuracy": reached, "train_fall": fell, "eval_accuracy": level,
                  "eval_accuracy_best": float(held_out.values.max()), "eval_accuracy_median": median(held_out.values),
                  "chance": chance, "eval_loss_first": float(losses[0]) if losses is not None and len(losses) else None,
                  "eval_loss_end": float(losses[-1]) if losses is not None and len(losses) else None,
                  "records": len(held_out)},
    )
