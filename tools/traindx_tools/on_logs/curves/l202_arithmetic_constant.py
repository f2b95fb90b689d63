"""A loss that stays at a number which arithmetic predicts.

Some numbers name their cause. ln C is the cross entropy of saying "every one of the C classes is as likely as the
other" (2.3026 for 10 classes, 10.825 for a vocabulary of 50,257): the output does not depend on the input, whatever
the reason. ln 2 = 0.6931 is a coin flip: a binary classifier that has not learned, or DPO while the policy still equals
its reference. -ln(e / (e + C - 1)) is the lowest cross entropy over C classes when probabilities are fed as logits,
because softmax of a one and C - 1 zeros never gets nearer to one (0.744 for 4 classes, 1.461 for 10); a wrong answer
adds exactly one nat, so the level is that floor plus the error rate. 16.118 times the error rate is what outputs of 0
and 1 cost where probabilities are bounded by 1e-7 (Keras), 100 times where torch's BCELoss bounds the logarithm: the
outputs are saturated, and the gradient is zero. The variance of the target is the squared error
of a model that always says the mean: R2 is 0. And where training and validation loss differ by exactly the number
of accumulation steps or processes, one of them is summed where it should be averaged.

Any number lies near ln C for some C, and any two losses have some ratio. Each match therefore needs a plateau over
half of the records at least, a tolerance that follows the scatter, and one of: a class count stated in configuration
or log, an accuracy of 1/C, or a small C that is hit within 0.1 % (0.3 % for ln 2) by a loss that never was anywhere
else. A loss that starts at ln C and falls is healthy, and so is one that settles anywhere after a fall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import curve, median
from traindx_tools.on_logs.curves.constants import (
    COIN_TOLERANCE,
    GUESSED_TOLERANCE,
    KNOWN_TOLERANCE,
    Match,
    explain,
)
from traindx_tools.on_logs.curves.learning import (
    aligned,
    class_counts,
    continues_earlier_run,
    held_out_loss,
    is_adversarial,
    is_reinforcement,
    listed,
    main_loss,
    number,
    percent,
    setting,
    span,
)
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

RATIO_SPREAD = 0.05

RULE = Rule(
    id="L202",
    name="arithmetic-constant",
    title="The loss stays at a number that arithmetic predicts",
    severity=Severity.HIGH,
    sees="the level of the training and validation loss, class counts, accuracies, R2",
    matters="The number names the cause, or narrows it to very few.",
    alike=(
        "An untrained classifier starts at ln C and leaves it.",
        "Label smoothing has a floor as well: the entropy of the smoothed labels.",
        "A language model may converge near any number; only one that never was elsewhere is stuck there.",
    ),
    confirm=(
        "For ln C: print the outputs for two different inputs; they are equal.",
        "For the bound of the loss: print the logits; they are far beyond ten in size.",
        "For the double softmax: print the sum over classes of what goes into cross_entropy; it is 1.",
        "For the variance: compare with target.var(); print the shapes of prediction and target.",
    ),
    thresholds={
        "known": Threshold(KNOWN_TOLERANCE, "relative", "where class count or accuracy agree"),
        "coin": Threshold(COIN_TOLERANCE, "relative", "for ln 2 without a witness"),
        "guessed": Threshold(GUESSED_TOLERANCE, "relative", "arithmetic: ln 19 and ln 20 lie 1.7 % apart"),
        "ratio_spread": Threshold(RATIO_SPREAD, "relative", "scatter of a ratio that is meant to be constant"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """Findings for the training loss, the validation loss, and the ratio of the two."""
    for series in (main_loss(run), held_out_loss(run)):
        match = explain(run, series) if series is not None else None
        if series is not None and match is not None:
            yield _finding(series, match)
    yield from _multiplied(run)
    yield from _multiplied_start(run)


def _finding(series: Series, match: Match) -> Finding:
    when = span(series, match.start, match.end)
    agrees = f"; {listed(match.agrees)}" if match.agrees else ""
    strong = bool(match.agrees) or match.kind == "double-softmax"
    return RULE.finding(
        f"{series} {_WORDS[match.kind](match)} {when}{agrees}" if match.kind != "double-softmax"
        else f"{series} {_WORDS[match.kind](match)} ({when}){agrees}",
        series.at(match.start, match.end),
        series.source,
        bearing=Bearing.SIGN,
        severity=Severity.HIGH if strong or match.from_start else Severity.MEDIUM,
        measured={"kind": match.kind, "metric": series.name, "group": series.group, "level": match.level,
                  "expected": match.expected, "classes": match.classes, "accuracy": match.accuracy,
                  "from_start": match.from_start, "corroborated": bool(match.agrees),
                  "binary": match.classes == 2},
    )


def _guess_words(match: Match) -> str:
    if match.classes == 2:
        return (f"stays near {number(match.level)}, ln 2 = {math.log(2):.4f}: what a coin flip gives (two "
                "classes, or a preference loss while policy and reference are equal),")
    return (f"stays near {number(match.level)}, ln({match.classes}) = {match.expected:.4f}: what a uniform "
            f"guess over {match.classes} classes gives,")


def _softmax_words(match: Match) -> str:
    classes, accuracy = match.classes or 2, match.accuracy or 0.0
    floor = -math.log(math.e / (math.e + classes - 1))
    wrong = f" plus the error rate of {percent(1.0 - accuracy)}" if accuracy < 0.9995 else ""
    return (f"settles at {number(match.level)}: {floor:.4f} = -ln(e/(e+{classes - 1})), the lowest cross entropy over "
            f"{classes} classes when probabilities are fed as logits,{wrong} while accuracy is {accuracy:.3g}")


def _variance_words(match: Match) -> str:
    return (f"stays near {number(match.level)}, the variance of the target ({number(match.expected)}): what "
            "predicting the mean gives,")


def _certain_words(match: Match) -> str:
    accuracy = match.accuracy or 0.0
    return (f"stays at {number(match.level)} at an accuracy of {percent(accuracy)}: a wrong answer costs "
            f"{number(match.expected / (1.0 - accuracy))}, the most that this loss gives, so all outputs are 0 or 1 to "
            "the last digit,")


_WORDS = {"clipped-certainty": _certain_words,
          "uniform-guess": _guess_words, "double-softmax": _softmax_words, "target-variance": _variance_words}


def _multiplied(run: Run) -> Iterator[Finding]:
    """Training and validation loss that differ by the accumulation steps or by the world size at every record."""
    train, held_out = main_loss(run), held_out_loss(run)
    if train is None or held_out is None or is_reinforcement(run) or is_adversarial(run):
        return
    t, h = curve(train), curve(held_out)
    if len(h) < 3 or len(t) < 3 or t.values.min() <= 1e-6 or h.values.min() <= 1e-6:
        return
    ratios = aligned(t, h) / h.values
    for name, factor in _factors(run):
        for constant, which in ((factor, "training loss is {k:g} times the validation loss"),
                                (1.0 / factor, "validation loss is {k:g} times the training loss")):
            off = np.abs(ratios / constant - 1.0)
            if median(off) <= RATIO_SPREAD and float(off.max()) <= 4.0 * RATIO_SPREAD:
                start, end = h.where(0, len(h) - 1)
                yield RULE.finding(
                    f"{which.format(k=factor)} at all {len(h)} evaluations {span(held_out, start, end)} "
                    f"(between {number(float(ratios.min()))} and {number(float(ratios.max()))} as a ratio of "
                    f"training to "
                    f"validation), and {name} is {factor:g}",
                    held_out.at(start, end), held_out.source, bearing=Bearing.SIGN,
                    severity=Severity.MEDIUM,
                    measured={"kind": "loss-ratio", "metric": train.name, "factor": factor, "factor_name": name,
                              "ratio": median(ratios), "records": len(h)},
                )
                return


def _multiplied_start(run: Run) -> Iterator[Finding]:
    """A training loss whose first record is the accumulation steps (or processes) times ln C of a stated C."""
    series = main_loss(run)
    c = curve(series) if series is not None else None
    if c is None or len(c) < 3 or is_reinforcement(run) or is_adversarial(run) or continues_earlier_run(run, c.series):
        return
    first = float(c.values[0])
    for name, factor in _factors(run):
        for known in class_counts(run):
            expected = factor * math.log(known.count)
            if abs(first / expected - 1.0) <= KNOWN_TOLERANCE:
                start = c.where(0, 0)[0]
                yield RULE.finding(
                    f"{c.series} starts at {number(first)}, {factor:g} times ln({known.count}) = "
                    f"{number(math.log(known.count))} ({known.why}), and {name} is {factor:g}",
                    c.series.at(start), c.series.source, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
                    measured={"kind": "loss-ratio-at-start", "metric": c.series.name, "factor": factor,
                              "factor_name": name, "level": first, "classes": known.count},
                )
                return


def _factors(run: Run) -> Iterator[tuple[str, float]]:
    steps = setting(run.config, "gradientaccumulationsteps", "accumulationsteps", "accumsteps", "gradaccum",
                    "accumulategradbatches", "gradaccumsteps", "gradaccumulation", "accum", "accumulate")
    if steps is not None and 2 <= steps[1] <= 4096:
        yield steps
    if run.world_size is not None and 2 <= run.world_size <= 65_536:
        yield "the world size", float(run.world_size)
