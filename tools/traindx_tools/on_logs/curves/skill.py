"""Scores with a known zero: what a model without any skill gets, and whether a run ends far below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.baselines import (
    Curve,
    constant,
    curve,
    head,
    last_part,
    median,
    noise,
    ratio,
    tail,
    trend,
)
from traindx_tools.on_logs.curves.constants import key_with_underscores, logged_variances
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    class_counts,
    is_adversarial,
    is_preference,
    is_reinforcement,
    main_loss,
    number,
    setting,
)
from traindx_tools.on_logs.run import Floats, Run

FAR, INVERTED, AREA = -0.5, -0.2, 0.35
ENOUGH = 3
MADE_GOOD = 0.2
MARGIN, ERRORS, COUNTED, SHARE = 0.05, 4.0, 12, 0.9
"""Below chance, in units of the score; standard errors; records of a whole training log; records below chance."""
TWO, SEVERAL, MOST_CLASSES = 0.15, 0.5, 20
"""Of an accuracy: below 1/2 of two classes (unequal classes put it there by themselves), and as a share of 1/k of
several. Of more classes than these 1/k is too near 0 to be missed."""

_UNBOUNDED = re.compile(r"(?:^|_)(?:r_?2(?:_score)?|r_?sq(?:uared)?|nse|nash_sutcliffe|skill_score|"
                        r"explained_var\w*)(?:_|$)")
_CORRELATION = re.compile(r"(?:^|_)(?:mcc|matthews\w*|kappa|qwk|spearman\w*|pearson\w*|kendall\w*|corr|"
                          r"correlation)(?:_|$)")
_AREA = re.compile(r"(?:^|_)(?:auc|auroc|roc_auc|c_?index|cindex|concordance\w*|harrell\w*)(?:_|$)")
_OTHER_AREA = re.compile(r"(?:^|_)(?:pr|prc|precision_recall)(?:_|$)")
"""Areas whose chance is the share of the positives."""
_SAMPLES = {"train": ("trainsize", "numtrain", "ntrain", "trainsamples", "numtrainsamples"),
            "validation": ("valsize", "numval", "nval", "valsamples", "numvalsamples", "evalsize", "numeval"),
            "test": ("testsize", "numtest", "ntest", "testsamples", "numtestsamples")}
"""Settings that say how many samples a group has."""


@dataclass(frozen=True)
class Skill:
    """A curve as skill: 0 for a model without any, and where it counts as harm."""

    curve: Curve
    kind: str
    worst: float
    words: str
    chance: float = 0.0
    """Of the score as it is logged."""
    classes: int | None = None
    """Of an accuracy."""


def harm(run: Run) -> Skill | None:
    """The score by which the run ends far below a model without skill: of held-out data where there is one."""
    found = [s for s in (*_scores(run), *_from_variance(run)) if _does_harm(s)]
    if not found and _loss_falls(run):
        found = [s for s in (*_scores(run), *_accuracies(run)) if s.kind == "inverted" and _settles_below(run, s)]
    found.sort(key=lambda s: (s.kind != "unbounded", s.curve.series.group == "train"))
    return found[0] if found else None


def skill_in_training(run: Run, harmful: Skill) -> float | None:
    """The skill that the training data show, where the log tells: by the same score, or by the same error on both."""
    series = harmful.curve.series
    if series.group == "train":
        return median(last_part(harmful.curve.values, 1 / 3))
    twin = run.first(series.name, group="train")
    if twin is not None and harmful.kind == "inverted" and len(curve(twin)):
        trained = accuracy(run, "train") if harmful.classes else None
        level = tail(trained.values) if trained else median(last_part(curve(twin).values, 1 / 3))
        return (level - harmful.chance) / (1.0 - harmful.chance)
    if twin is not None and harmful.kind == "unbounded" and series.name == "r2" and len(curve(twin)):
        return median(last_part(curve(twin).values, 1 / 3))
    for name, power in (("mse", 1), ("rmse", 2)):
        train, held_out = run.first(name, group="train"), run.first(name, group=series.group)
        if train is not None and held_out is not None and len(curve(train)) and len(curve(held_out)):
            share = ratio(tail(curve(train).values), tail(curve(held_out).values)) ** power
            return 1.0 - share * (1.0 - median(last_part(harmful.curve.values, 1 / 3)))
    return None


def _scores(run: Run) -> Iterator[Skill]:
    of_a_policy = is_reinforcement(run)
    for series in run.series:
        name = "r2" if series.name == "r2" else key_with_underscores(series.original)
        c = curve(series)
        if not len(c) or (of_a_policy and "explained_var" in name):
            continue
        if _UNBOUNDED.search(name) and c.values.max() <= 1.0 + 1e-6:
            yield Skill(c, "unbounded", FAR, "always saying the mean gives 0")
        elif _CORRELATION.search(name) and c.values.max() <= 1.0 and c.values.min() >= -1.0:
            yield Skill(c, "inverted", INVERTED, "guessing gives 0")
        elif _AREA.search(name) and not _OTHER_AREA.search(name) and c.values.min() >= 0.0 and c.values.max() <= 1.0:
            shifted = Curve(c.series, c.values - 0.5, c.index)
            yield Skill(shifted, "inverted", AREA - 0.5, "guessing gives 0.5", 0.5)


def _accuracies(run: Run) -> Iterator[Skill]:
    """Accuracies over a known number of classes. One that never changes is that of one answer for all."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    classes = max([k.count for k in class_counts(run)], default=2 if is_preference(run) else 0)
    for group in ("validation", "test", "train"):
        c = accuracy(run, group)
        if c is None or constant(last_part(c.values, 1 / 3)):
            continue
        k = 2 if "binary" in c.series.original.lower() else classes
        if 2 <= k <= MOST_CLASSES:
            worst = -TWO if k == 2 else -SEVERAL / k
            yield Skill(Curve(c.series, c.values - 1.0 / k, c.index), "inverted", worst,
                        f"guessing one of {k} classes gives {number(1.0 / k)}", 1.0 / k, k)


def _from_variance(run: Run) -> Iterator[Skill]:
    """R2 as it follows from a squared error and the target's variance, where no R2 is logged."""
    name, variance = next(iter(logged_variances(run)), ("", 0.0))
    if variance <= 0 or any(s.name == "r2" for s in run.series):
        return
    for group in ("validation", "test", "train"):
        series = run.first("mse", group=group)
        if series is not None and len(series):
            c = curve(series)
            yield Skill(Curve(series, 1.0 - c.values / variance, c.index), "unbounded", 2 * FAR,
                         f"always saying the mean gives {number(variance)} ({name})")


def _does_harm(s: Skill) -> bool:
    v = s.curve.values
    if len(v) < ENOUGH:
        return False
    return float(last_part(v, 1 / 3).max()) <= s.worst and not _rising(v)


def _loss_falls(run: Run) -> bool:
    """Whether what is optimised gets better in training, by more than its noise."""
    loss = main_loss(run)
    values = curve(loss).values if loss is not None else np.empty(0)
    return len(values) >= COUNTED and head(values) - tail(values) > 3.0 * noise(values)


def _settles_below(run: Run, s: Skill) -> bool:
    """Whether a score rests below chance by more than chance: over many records, or by its number of samples.

    What is fitted to the training data is never below chance on them but by a sign. On held-out data all records share
    the same samples, so that only their number says how far chance goes (the standard error of an area of n balanced
    samples is 0.58 / sqrt(n), of an accuracy sqrt(p (1 - p) / n)).
    """
    v, group = s.curve.values, s.curve.series.group
    last = last_part(v, 1 / 3)
    if len(v) < COUNTED or _rising(v):
        return False
    samples = setting(run.config, *_SAMPLES.get(group, ()))
    if samples is not None and samples[1] >= 1:
        spread = float(np.sqrt(s.chance * (1 - s.chance)) if s.classes else 0.58)
        least = max(MARGIN if not s.classes else -s.worst / 2, ERRORS * spread / float(np.sqrt(samples[1])))
        return float(last.max()) <= -least
    if group != "train" or s.classes:
        return float(last.max()) <= s.worst
    error = float(last.std()) / float(np.sqrt(len(last)))
    return median(last) <= -MARGIN and float(np.mean(last < 0)) >= SHARE and -float(last.mean()) >= ERRORS * error


def _rising(v: Floats) -> bool:
    """Whether a score below zero is on its way up: it made good a part of its distance in the second half."""
    third = max(1, len(v) // 3)
    middle, end = median(v[third: 2 * third]), median(last_part(v, 1 / 3))
    ends_best = float(v[-1]) >= float(v.max()) and float(v[-1]) - middle >= MADE_GOOD * abs(middle)
    return ends_best or (end - middle >= MADE_GOOD * abs(middle) and trend(v) > 2.0)
