"""Loss and accuracy of the same data contradict each other.

The two measure the same outputs, so they move together within limits that arithmetic sets: a calibrated classifier of
accuracy a has a cross entropy of at most -a ln a - (1 - a) ln((1 - a) / (C - 1)). Three contradictions are reported.

"floored-loss": the held-out accuracy is nearly perfect, and its loss settles on a level far above that limit while
the training loss is near zero. The loss of the evaluation is not the loss of the training: probabilities fed where
logits are expected, another reduction, another weighting, targets in another format.

"accuracy-chance": the loss falls by four fifths and more, and the accuracy of the same data stays where it was. What
is counted as right has nothing to do with what is optimised: argmax over the wrong axis, shifted or shuffled labels in
the metric, a target that the metric does not know. (Training accuracy only: on held-out data this is L208.)

"negative-loss": a classifier's loss falls below zero and goes on falling, while its accuracy does not rise. No cross
entropy is negative: the sign is wrong, or what is averaged is the log-probability itself.

"accuracy-falls": the held-out loss falls throughout and the accuracy falls as well, by ten points and more.

A held-out loss that rises while accuracy stays high is over-confidence (L203) and no contradiction. Label smoothing
puts a floor under the training loss too, hence the look at both.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import (
    Curve,
    beginning,
    calibrated_loss,
    curve,
    drop,
    ending,
    head,
    median,
    noise,
    smooth,
    spread,
    tail,
    tail_count,
    trend,
)
from traindx_tools.on_logs.curves.constants import double_softmax
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    aligned,
    class_counts,
    held_out_loss,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    percent,
    setting,
    span,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

HIGH_ACCURACY = 0.95
FLOOR = 0.25
TIMES_CALIBRATED = 2.0
TRAIN_SHARE = 0.25
FALL = 0.8
STUCK_ACCURACY = 0.5
ACCURACY_MOVE = 0.05

RULE = Rule(
    id="L205",
    name="loss-accuracy-contradiction",
    title="Loss and accuracy of the same data contradict each other",
    severity=Severity.HIGH,
    sees="loss and accuracy of the same group side by side",
    matters="One of the two is computed wrongly: decisions (early stopping, best checkpoint) rest on a wrong number.",
    alike=(
        "Over-confidence: the loss rises while accuracy stays.",
        "Label smoothing: training and validation loss have the same floor.",
        "Few, very wrong samples (wrong labels) can carry a high mean loss beside a high accuracy.",
    ),
    confirm=(
        "Compute cross entropy by hand for one evaluation batch: -log_softmax(logits)[label].mean().",
        "Print what goes into the loss and into the metric: shape, sum over classes, the first five labels.",
    ),
    thresholds={
        "high_accuracy": Threshold(HIGH_ACCURACY, "fraction", "at 95 % over 10 classes the limit is 0.31 nats"),
        "floor": Threshold(FLOOR, "nats", "lower losses are harmless"),
        "times_calibrated": Threshold(TIMES_CALIBRATED, "times", "-a ln a - (1-a) ln((1-a)/(C-1)), arithmetic"),
        "train_share": Threshold(TRAIN_SHARE, "of the held-out loss", "a training loss below it has no such floor"),
        "fall": Threshold(FALL, "relative fall of the loss", "four fifths"),
        "stuck_accuracy": Threshold(STUCK_ACCURACY, "fraction", "an accuracy that stays below it has not followed"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """Findings for the held-out data, then for the training data."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    held_out, train = held_out_loss(run), main_loss(run)
    if held_out is not None and (acc := accuracy(run, held_out.group)) is not None:
        yield from _floored(run, curve(held_out), acc, curve(train) if train is not None else None)
        yield from _both_fall(curve(held_out), acc)
    if train is not None and (acc := accuracy(run, "train")) is not None:
        yield from _accuracy_stuck(curve(train), acc)
    if train is not None and (acc := accuracy(run, "train", "validation", "test")) is not None:
        yield from _negative(curve(train), acc)


def _floored(run: Run, loss: Curve, acc: Curve, train: Curve | None) -> Iterator[Finding]:
    if len(loss) < 4 or len(acc) < 3:
        return
    share, level = tail(aligned(acc, loss)), tail(loss.values)
    classes = max([k.count for k in class_counts(run) if k.count <= 100_000], default=10)
    limit = TIMES_CALIBRATED * calibrated_loss(share, classes)
    last = loss.values[-tail_count(len(loss)):]
    flat = spread(last) <= 0.05 * level + 4.0 * noise(loss.values) and trend(last) <= 2.0
    risen = level > 1.1 * float(smooth(loss.values).min())
    if share < HIGH_ACCURACY or level < max(FLOOR, limit) or not flat or risen:
        return
    train_level = tail(train.values) if train is not None and len(train) >= 2 else None
    softmax = double_softmax(run, loss)
    smoothing = setting(run.config, "labelsmoothing", "smoothing", "labelsmoothingfactor")
    same_floor = train_level is None or train_level > TRAIN_SHARE * level
    harmless = same_floor and (softmax is None or (smoothing is not None and smoothing[1] > 0))
    start, end = loss.where(len(loss) - tail_count(len(loss)), len(loss) - 1)
    beside = f" and the training loss {number(train_level)}" if train_level is not None else ""
    yield RULE.finding(
        f"{loss.series} settles at {number(level)} {span(loss.series, start, end)} while {acc.series} is "
        f"{number(share)}{beside}: a calibrated classifier of that accuracy stays below "
        f"{number(max(calibrated_loss(share, classes), 0.005))}",
        loss.series.at(start, end), loss.series.source, bearing=Bearing.SIGN,
        severity=Severity.INFO if harmless else Severity.HIGH,
        measured={"kind": "floored-loss", "level": level, "accuracy": share, "train_level": train_level,
                  "double_softmax_classes": softmax.classes if softmax is not None else None,
                  "train_floored": same_floor},
    )


def _both_fall(loss: Curve, acc: Curve) -> Iterator[Finding]:
    if len(loss) < 6 or len(acc) < 6 or trend(loss.values) > -2.0 or trend(acc.values) > -2.0:
        return
    lost = head(acc.values) - tail(acc.values)
    if lost < 2 * ACCURACY_MOVE or drop(loss.values) < 0.1 or lost < 3.0 * noise(acc.values):
        return
    start, end = loss.where(0, len(loss) - 1)
    yield RULE.finding(
        f"{loss.series} falls from {beginning(loss)} to {ending(loss)} and {acc.series} falls "
        f"as well, from {beginning(acc)} to {ending(acc)}, {span(loss.series, start, end)}",
        loss.series.at(start, end), loss.series.source, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
        measured={"kind": "accuracy-falls", "level": tail(loss.values), "accuracy": tail(acc.values),
                  "accuracy_start": head(acc.values)},
    )


def _negative(loss: Curve, acc: Curve) -> Iterator[Finding]:
    """A loss of a classifier that falls below zero without end, while it gets no better."""
    if loss.series.name not in ("loss", "nll") or len(loss) < 5 or len(acc) < 3 or trend(loss.values) > -2.0:
        return
    first, last = head(loss.values), tail(loss.values)
    falls_on = last < 0.0 and float(loss.values[-1]) <= last and last < min(3.0 * first, first - 1.0)
    better = tail(acc.values) > head(acc.values) + ACCURACY_MOVE or tail(acc.values) > STUCK_ACCURACY
    if not falls_on or better:
        return
    start, end = loss.where(0, len(loss) - 1)
    yield RULE.finding(
        f"{loss.series} falls below zero without end, from {number(first)} to {number(float(loss.values[-1]))} "
        f"{span(loss.series, start, end)}, and {acc.series} is {ending(acc)} (it was "
        f"{beginning(acc)}): no cross entropy is negative", loss.series.at(start, end), loss.series.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured={"kind": "negative-loss", "level": last, "start": first, "accuracy": tail(acc.values)})


def _accuracy_stuck(loss: Curve, acc: Curve) -> Iterator[Finding]:
    if len(loss) < 5 or len(acc) < 5 or loss.values.min() < 0.0:
        return
    fall, level = drop(loss.values), tail(acc.values)
    first, moved = head(acc.values), abs(tail(acc.values) - head(acc.values))
    follows = moved > ACCURACY_MOVE + 2.0 * noise(acc.values) or median(acc.values) > STUCK_ACCURACY
    if fall < FALL or level > STUCK_ACCURACY or follows:
        return
    start, end = loss.where(0, len(loss) - 1)
    yield RULE.finding(
        f"{loss.series} falls by {percent(fall)} to {ending(loss)} {span(loss.series, start, end)} while "
        f"{acc.series} on the same data stays at {ending(acc)}, where it started at {beginning(acc)}",
        loss.series.at(start, end), loss.series.source, bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured={"kind": "accuracy-chance", "fall": fall, "level": tail(loss.values), "accuracy": level,
                  "accuracy_start": first},
    )
