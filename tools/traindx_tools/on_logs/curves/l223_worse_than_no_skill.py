"""A score stays far on the wrong side of what a model without any skill would get.

Some scores have a known zero. R2 (and the Nash-Sutcliffe efficiency) is 0 for a model that always says the mean; an
area under the ROC curve or a concordance index is 0.5, an accuracy over k classes 1/k, a correlation, a kappa or a
Matthews coefficient 0 for one that guesses. Below that zero the model does harm: R2 of -69 means squared errors
seventy times the variance of the target. Where no R2 is logged but the target's variance is, it follows from the
squared error.

A run begins there, with random weights, and a validation score may be a little below zero for a while. What counts is
the last third of the log, and that the score is not on its way up: it made good less than a fifth of its distance from
zero since the middle of the log.

`measured.kind`: "unbounded" (R2 and its kin, which can fall without limit) or "inverted" (scores of an order, which
can only be turned round: the model learned the opposite, or the score is given the opposite; nearer to chance where
the training loss falls and the log has many records, or says how many samples there are). `measured.train`: whether
the training data show skill by the same score or the same error ("learned"), show none either ("worse"), or the log
does not tell ("unknown").
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import last_part, median
from traindx_tools.on_logs.curves.learning import number, span
from traindx_tools.on_logs.curves.skill import (
    AREA,
    COUNTED,
    ENOUGH,
    ERRORS,
    FAR,
    INVERTED,
    MADE_GOOD,
    MARGIN,
    SEVERAL,
    TWO,
    Skill,
    harm,
    skill_in_training,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

LEARNED = 0.3

RULE = Rule(
    id="L223",
    name="worse-than-no-skill",
    title="A score is far below that of a model without skill",
    severity=Severity.HIGH,
    sees="R2, Nash-Sutcliffe efficiency, squared error beside a logged variance, ROC area, correlations, kappa, MCC",
    matters="A constant would do better: the outputs are ruined, or have another scale or sign than the target.",
    alike=(
        "The first epochs, where random weights give any score; it rises then.",
        "R2 on a handful of samples, or on a target that hardly varies: its denominator is near 0.",
        "An explained variance of a value function in reinforcement learning, which is often negative early on.",
        "An accuracy over very unequal classes whose loss is weighted for the rare one.",
    ),
    confirm=(
        "Compute the score of always saying the training mean on the same samples: it has to be near 0.",
        "Compute the score once with the outputs negated (or the order reversed): where that is as far above chance, "
        "find which of loss and score means the opposite.",
        "Print mean, std, minimum and maximum of predictions and targets of one evaluation batch, in the same unit.",
    ),
    thresholds={
        "far": Threshold(FAR, "R2", "half the variance worse than the mean; R2 of 100 samples scatters by 0.1"),
        "inverted": Threshold(INVERTED, "correlation", "two standard errors at 100 samples (1/sqrt(n))"),
        "area": Threshold(AREA, "ROC area", "three standard errors below 0.5 at 50 samples a class"),
        "made_good": Threshold(MADE_GOOD, "of the distance from no skill", "a score that made good more since the "
                                                                           "middle of the log is still rising"),
        "learned": Threshold(LEARNED, "R2", "then the training data are fitted"),
        "margin": Threshold(MARGIN, "of the score", "in training, below chance, where the loss falls"),
        "errors": Threshold(ERRORS, "standard errors", "of the records in training, of the samples if known"),
        "counted": Threshold(COUNTED, "records", "for what is nearer to chance"),
        "two": Threshold(TWO, "accuracy", "below 1/2 of two classes: unequal classes put it there"),
        "several": Threshold(SEVERAL, "of 1/k", "below chance over k classes"),
        "enough": Threshold(ENOUGH, "records", "fewer show no course"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: of held-out data where there is one."""
    found = harm(run)
    if found is not None:
        yield _finding(run, found)


def _finding(run: Run, s: Skill) -> Finding:
    c, series = s.curve, s.curve.series
    count = len(last_part(c.values, 1 / 3))
    start, end = c.where(len(c) - count, len(c) - 1)
    level = float(median(series.values[start: end + 1]))
    fit = skill_in_training(run, s)
    train = "unknown" if fit is None else "learned" if fit >= LEARNED else "worse" if fit <= s.worst else "unknown"
    shown = (fit or 0.0) * (1.0 - s.chance) + s.chance
    beside = {"unknown": "", "learned": f"; on the training data it is about {number(shown)}",
              "worse": "; the training data fare no better" if series.group != "train" else ""}[train]
    return RULE.finding(
        f"{series} is {number(level)} in the last {count} records, {span(series, start, end)}, where {s.words}: "
        f"worse than a model without skill{beside}{_turned(s, train)}", series.at(start, end), series.source,
        bearing=Bearing.SIGN,
        measured={"kind": s.kind, "level": level, "skill": median(last_part(c.values, 1 / 3)), "group": series.group,
                  "train": train, "records": len(c), "chance": s.chance, "classes": s.classes})


def _turned(s: Skill, train: str) -> str:
    """What lies the other way round."""
    if s.kind != "inverted":
        return ""
    if train == "learned":
        return ": classes or order are numbered otherwise in what it is compared with"
    return (": the loss rewards the opposite of what the score counts (a sign, the order of a sort, the numbering of "
            "classes)")
