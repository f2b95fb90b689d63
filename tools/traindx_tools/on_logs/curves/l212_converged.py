"""The loss fell and has come to rest: the run has converged.

No fault. It is reported because it speaks against "the model does not learn": a curve that is flat at the end after
it fell by a fifth or more, or a flat one beside an accuracy of 85 % and more (a good start, as in fine-tuning), has
done its work. Where the log prints the variance of the target and a fifth of it or more is left in the loss, the
curve has come to rest too early: `measured.kind` is "stalled" then, and `measured.unexplained` the share. What
flattens over the last epochs while the learning rate runs out is expected to.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import (
    Curve,
    beginning,
    curve,
    drop,
    ending,
    last_part,
    median,
    noise,
    ratio,
    smooth,
    tail,
)
from traindx_tools.on_logs.curves.constants import explain, logged_variances
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    percent,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

FALL = 0.2
FLAT = 0.05
GOOD_ACCURACY = 0.85
UNEXPLAINED = 0.2

RULE = Rule(
    id="L212",
    name="converged",
    title="The loss fell and has come to rest",
    severity=Severity.INFO,
    sees="training and validation loss, accuracy",
    matters="It rules out that nothing is learned; a flat end is what a finished run looks like.",
    alike=(
        "A loss that stays where it started (L201), or at a number that arithmetic predicts (L202).",
        "A learning rate that ran out too early (L301, L306) freezes a loss that could fall further.",
    ),
    confirm=("Continue for a tenth of the steps at a constant learning rate: a converged loss hardly moves.",),
    thresholds={
        "fall": Threshold(FALL, "relative fall", "beyond any scatter of a loss that does not learn"),
        "flat": Threshold(FLAT, "relative change", "between the two halves of the last third"),
        "unexplained": Threshold(UNEXPLAINED, "of the target's variance", "R2 of 0.8: a share that a model "
                                                                          "could learn"),
        "good_accuracy": Threshold(GOOD_ACCURACY, "fraction", "a good model, whatever its loss does"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """An INFO finding for each of training and validation loss that came to rest."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    for group in ("train", "validation"):
        series = main_loss(run, group)
        c = curve(series) if series is not None else None
        if c is None or len(c) < 5 or explain(run, c.series) is not None:
            continue
        acc = accuracy(run, group)
        level = tail(acc.values) if acc is not None else None
        kind = _kind(c, level)
        if kind is not None:
            yield _finding(run, c, kind, level)


def _kind(c: Curve, acc: float | None) -> str | None:
    end = last_part(c.values, 1 / 3)
    middle = len(end) // 2
    level = abs(median(end))
    at_rest = abs(median(end[:middle]) - median(end[middle:])) <= FLAT * level + 2.0 * noise(c.values)
    risen = tail(c.values) > float(smooth(c.values).min()) + 0.1 * level + 4.0 * noise(c.values)
    if not at_rest or risen:
        return None
    if drop(c.values) >= FALL:
        return "fell"
    return "good-start" if acc is not None and acc >= GOOD_ACCURACY else None


def _finding(run: Run, c: Curve, kind: str, acc: float | None) -> Finding:
    start, end = c.where(0, len(c) - 1)
    said = f"; accuracy is {percent(acc)}" if acc is not None else ""
    name, variance = next(iter(logged_variances(run)), ("", None))
    unexplained = ratio(tail(c.values), variance) if variance is not None else None
    if unexplained is not None and UNEXPLAINED <= unexplained <= 1.5 and kind == "fell":
        kind, said = "stalled", f"{said}, {percent(unexplained)} of the variance ({name} is {number(variance or 0.0)})"
    course = "is flat at" if kind == "good-start" else (
        f"fell by {percent(drop(c.values))} from {beginning(c)} and ends at")
    return RULE.finding(
        f"{c.series} {course} {ending(c)}{said}",
        c.series.at(start, end), c.series.source, bearing=Bearing.COMPANION,
        measured={"kind": kind, "group": c.series.group, "fall": drop(c.values), "level": tail(c.values),
                  "accuracy": acc, "unexplained": unexplained},
    )
