"""The loss never came down: it ends where it began.

A run that does not learn and a run that has finished learning both end flat. They differ in what came before and in
where they stopped: the second fell first, or started from good weights with a high accuracy. This rule reports the
first kind only. It compares the level of the first tenth of the records with that of the last quarter; a loss that
moved by less than 2 % counts as flat where a second metric agrees that nothing was learned (an accuracy that is low
and does not rise, R2 near 0, a loss that equals a constant of arithmetic), and by less than 1 % where nothing else is
logged and the scatter is small enough to tell.

`measured.pace` tells a "flat" curve from a "crawl": a fall that is certain (Mann-Kendall z below -3) and yet so slow
that it amounts to nothing. A crawl says that gradients reach the weights and that steps are far too small: a tiny
learning rate, gradients clipped while they are still multiplied by the loss scale, updates lost to rounding. A flat
curve says that nothing useful arrives: dead units, frozen parameters, labels without relation to inputs.

`measured.moved` says that the loss came to its level from elsewhere in the first records: the weights were updated, and
what keeps every update from them is not the cause.

Losses of reinforcement learning and of adversarial training have no level that means anything and are left alone, and
so is a log that starts in the middle of a training (a resumed run) unless a second metric agrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import (
    Curve,
    beginning,
    block_means,
    constant,
    curve,
    drop,
    ending,
    head,
    noise,
    ratio,
    smooth,
    tail,
    trend,
)
from traindx_tools.on_logs.curves.constants import explain
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    class_counts,
    continues_earlier_run,
    held_out_loss,
    is_adversarial,
    is_reinforcement,
    listed,
    main_loss,
    number,
    percent,
    span,
)
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

FLAT = 0.02
FLAT_ALONE = 0.01
CERTAIN = 0.005
BEST_FALL = 0.08
RECORDS = 6
GOOD_ACCURACY = 0.8
FAIR_ACCURACY = 0.6
ACCURACY_GAIN = 0.06
LATE = 3
MOVED = 6.0
LATER = 8
NOTHING = 0.001
"""Share of a level below which a change is told as none: no reader of a curve sees a thousandth."""

RULE = Rule(
    id="L201",
    name="plateau",
    title="The loss never came down",
    severity=Severity.HIGH,
    sees="the main loss over the whole log, with accuracy and R2 as witnesses",
    matters="Steps are spent without anything being learned; more epochs will not change it.",
    alike=(
        "A converged run is flat too, but fell before, or has a high accuracy.",
        "Fine-tuning from good weights starts near its final loss.",
        "A long warm-up keeps the loss up for its first steps only.",
    ),
    confirm=(
        "Over-fit one batch for 200 steps: a sound model and loop bring its loss near 0.",
        "Print the norm of every parameter's gradient and of its change over one step.",
    ),
    thresholds={
        "flat": Threshold(FLAT, "relative fall", "over a whole run; sagemaker-debugger: 0.1 % in 10 steps"),
        "flat_alone": Threshold(FLAT_ALONE, "relative fall", "stricter where no second metric agrees"),
        "certain": Threshold(CERTAIN, "relative standard error", "half of flat_alone, or the noise could hide a fall"),
        "best_fall": Threshold(BEST_FALL, "relative fall", "a lower level in between: it learned, then lost it"),
        "late": Threshold(LATE, "epochs", "before the first record: its loss is not that of the beginning"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
        "moved": Threshold(MOVED, "standard deviations", "of the later half: chance does it once in 10^9 runs"),
        "later": Threshold(LATER, "records", "in the later half, so that its scatter is known"),
        "fair_accuracy": Threshold(FAIR_ACCURACY, "fraction", "above chance over two classes: no longer the sign of a "
                                                              "model that learned nothing"),
        "good_accuracy": Threshold(GOOD_ACCURACY, "fraction", "a model this good has learned, whatever its loss does"),
        "accuracy_gain": Threshold(ACCURACY_GAIN, "fraction", "an accuracy that rises this far is learning"),
    },
)


@dataclass(frozen=True)
class _Witness:
    """What other metrics say: `learned` settles that it works, `words` name what agrees that it does not."""

    learned: bool
    words: tuple[str, ...]
    accuracy: float | None = None


def check(run: Run) -> Iterator[Finding]:
    """A finding where the main loss ends where it began and nothing speaks for a good start."""
    series = main_loss(run) or held_out_loss(run)
    if series is None or is_reinforcement(run) or is_adversarial(run):
        return
    c = curve(series)
    if series.name == "elbo" and abs(drop(c.values)) > FLAT:
        return  # a bound rises while it is learned, its negative falls
    if len(c) < RECORDS or len(c) < 0.5 * len(series):
        return
    witness = _witness(run, series)
    if witness.learned or not _is_flat(c, witness):
        return
    near_zero = abs(tail(c.values)) < 0.1
    if not witness.words and (near_zero or _fell_below_zero(c.values) or continues_earlier_run(run, series)):
        return
    yield _finding(c, witness)


def _witness(run: Run, series: Series) -> _Witness:
    words: list[str] = []
    level = None
    for group in ("train", "validation", "test"):
        acc = accuracy(run, group)
        if acc is None or len(acc) < 3:
            continue
        level = tail(acc.values)
        rising = level - head(acc.values) >= ACCURACY_GAIN and trend(acc.values) > 1.5
        if level >= GOOD_ACCURACY or rising:
            return _Witness(True, (), level)
        if _says_nothing_learned(run, level):
            words.append(f"{group} accuracy is {percent(level)}")
    for score in run.find("r2"):
        level_r2 = tail(curve(score).values)
        if level_r2 > 0.3:
            return _Witness(True, (), level)
        words.append(f"R2 is {number(level_r2)}")
        break
    match = explain(run, series)
    if match is not None:
        said = _SAID.get(match.kind) or f"the {match.kind.replace('-', ' ')}"
        words.append(f"the level is {number(match.expected)}, {said}")
    return _Witness(False, tuple(words), level)


_SAID = {"clipped-certainty": "what outputs of 0 and 1 cost"}


def _says_nothing_learned(run: Run, level: float) -> bool:
    """Whether an accuracy that does not move is that of guessing. A fair one may as well be a good start.

    Where the number of classes is known, "fair" begins at twice the chance; else at 0.6, above chance over two classes.
    """
    known = [k.count for k in class_counts(run)]
    share = level / 100.0 if level > 1.0 else level
    return share < (min(0.6, 2.0 / min(known)) if known else FAIR_ACCURACY)


def _is_flat(c: Curve, witness: _Witness) -> bool:
    v = c.values
    level, scatter = abs(tail(v)), noise(v)
    error = ratio(1.2533 * scatter * (10.0 / len(v) + 4.0 / len(v)) ** 0.5, level)
    lowest = float(block_means(smooth(v), 10).min())
    best = ratio(head(v) - lowest, abs(head(v)))
    if not witness.words:
        return error <= CERTAIN and -0.5 <= drop(v) <= FLAT_ALONE and best <= BEST_FALL
    allowance = min(2.0 * error, 0.05)
    return -0.5 <= drop(v) <= FLAT + allowance and best <= BEST_FALL + 3.0 * ratio(scatter, level)


def _fell_below_zero(v: Floats) -> bool:
    """Whether a loss that is negative from the start (an energy, a log-density) fell by far more than it scatters.

    It has no zero to take a share of: the energy of a molecule may fall by all it can and by 0.4 % of its own size.
    """
    return bool((v < 0.0).all()) and head(v) - tail(v) > MOVED * noise(v)


def _moved(v: Floats) -> bool:
    """Whether the first record lies far outside of what the later half scatters: it came to its level from there."""
    later = v[len(v) // 2:]
    middle = float(np.median(later))
    scatter = 1.4826 * float(np.median(np.abs(later - middle)))
    return len(later) >= LATER and abs(float(v[0]) - middle) > max(MOVED * scatter, FLAT * abs(middle))


def _exact(v: Floats) -> bool:
    """Whether the loss is the same to the last of four digits and more in every record: no weight has moved."""
    digits = f"{abs(float(v[0])):.9f}".strip("0").replace(".", "")
    return constant(v) and len(digits) >= 4


def _both_levels(c: Curve) -> str:
    """The level at the end and that at the start, each with what it is the median of."""
    at_first = beginning(c).replace(" (", ", ").removesuffix(")")
    return f"{ending(c)[:-1]}; at first {at_first})" if ending(c).endswith(")") else (
        f"{ending(c)} (it started at {at_first})")


def _begins_late(series: Series) -> bool:
    """Whether epochs passed before the first record: most of what is learned may lie there."""
    return series.unit == "epoch" and float(series.epoch[0]) >= LATE


def _unseen(series: Series) -> str:
    return f"; what happened before epoch {series.epoch[0]:g} is not in the log" if _begins_late(series) else ""


def _finding(c: Curve, witness: _Witness) -> Finding:
    fall, z = drop(c.values), trend(c.values)
    pace = "crawl" if z < -3.0 and fall > 0.0 else "flat"
    start, end = c.where(0, len(c) - 1)
    moved = f"moves only from {beginning(c)} to {ending(c)}" if pace == "crawl" else (
        f"stays at {_both_levels(c)}")
    by = "less than 0.1 % apart" if abs(fall) < NOTHING else f"{percent(abs(fall))} {'less' if fall >= 0 else 'more'}"
    where = "" if "median" in moved else f" {span(c.series, start, end)}"
    agrees = f"; {listed(witness.words)}" if witness.words else ""
    return RULE.finding(
        f"{c.series} {moved}, {by}{where}{agrees}{_unseen(c.series)}",
        c.series.at(start, end),
        c.series.source,
        bearing=Bearing.SIGN if witness.words else Bearing.COMPANION,
        severity=Severity.HIGH if witness.words else Severity.LOW if _begins_late(c.series) else Severity.MEDIUM,
        measured={"metric": c.series.name, "group": c.series.group, "start": head(c.values), "level": tail(c.values),
                  "fall": fall, "noise": noise(c.values), "trend_z": z, "pace": pace, "records": len(c),
                  "accuracy": witness.accuracy, "corroborated": bool(witness.words),
                  "exact": _exact(c.values), "moved": _moved(c.values)},
    )
