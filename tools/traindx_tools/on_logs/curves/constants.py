"""Constants that arithmetic predicts, found in a loss: a uniform guess, a double softmax's floor, a target's variance.

A number alone proves little (any loss lies near ln C for some C), so each match needs a plateau, a tolerance from the
scatter, and either a small or known class count or a second metric that agrees.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.baselines import (
    Curve,
    calibrated_loss,
    curve,
    double_softmax_floor,
    head,
    median,
    noise,
    ratio,
    smooth,
    smoothed_floor,
    spread,
    tail,
    tail_count,
    trend,
    uniform_guess,
)
from traindx_tools.on_logs.curves.learning import (
    accuracy,
    aligned,
    class_counts,
    continues_earlier_run,
    is_adversarial,
    is_reinforcement,
    number,
    percent,
    setting,
)
from traindx_tools.on_logs.run import Run, Series

SMALL_COUNTS = tuple(range(2, 21))
"""Class counts whose double-softmax floors lie far enough apart to be recognised beside a perfect accuracy."""
GUESSED_COUNTS = tuple(range(3, 11))
"""Class counts whose logarithms lie far enough apart to be recognised without being told."""
USUAL_COUNTS = (20, 26, 27, 50, 65, 100, 128, 200, 256, 365, 512, 1000, 1024, 10_000, 21_841, 28_996, 30_000,
                30_522, 32_000, 32_001, 32_128, 50_257, 50_265, 50_304, 50_432, 100_277, 128_256, 151_936, 152_064,
                250_002, 256_000)
"""Class counts of common data sets and vocabulary sizes of common tokenizers."""
KNOWN_TOLERANCE = 0.02
"""Relative; where the class count is stated or an accuracy of 1/C agrees."""
COIN_TOLERANCE = 0.003
"""Relative; for ln 2, the one constant that needs no telling."""
GUESSED_TOLERANCE = 0.001
"""Relative; for the other class counts when nothing states them."""


BOUNDS = {"1e-7, the epsilon of Keras": 16.118096, "the float32 epsilon": 15.942385, "1e-8": 18.420681,
          "1e-10": 23.025851, "1e-12": 27.631021, "1e-15": 34.538776, "the floor of torch's BCELoss": 100.0}
"""What a wrong answer of full certainty costs where a loss bounds its probabilities: minus the bound's logarithm."""
BOUND_TOLERANCE = 0.005
"""Relative, besides the last digit of an accuracy of four digits."""


@dataclass(frozen=True)
class Match:
    """A constant found in a series. `start` and `end` are indices into the series: the plateau."""

    kind: str
    """"uniform-guess", "double-softmax", "target-variance" or "clipped-certainty"."""
    expected: float
    level: float
    start: int
    end: int
    from_start: bool
    classes: int | None = None
    accuracy: float | None = None
    agrees: tuple[str, ...] = ()
    """What else says so, in words; empty where only the number itself does."""


@dataclass(frozen=True)
class Plateau:
    """The last stretch of a curve that stays around one level. `start`: index into the curve."""

    level: float
    start: int
    scatter: float
    error: float
    """Standard error of the level."""


def plateau(c: Curve) -> Plateau | None:
    """The flat end of a curve: half of it at least, within 3 sigma or 1 %, without a drift of more than 1.5 %."""
    if len(c) < 4:
        return None
    level, scatter = tail(c.values), noise(c.values[len(c) // 4:])
    band = max(3.0 * scatter, 0.01 * abs(level))
    outside = np.flatnonzero(np.abs(smooth(c.values) - level) > band)
    start = int(outside[-1]) + 1 if len(outside) else 0
    flat = c.values[start:]
    if len(flat) < max(4, len(c) / 2):
        return None
    error = 1.2533 * scatter / math.sqrt(tail_count(len(c)))
    middle = len(flat) // 2
    if abs(median(flat[:middle]) - median(flat[middle:])) > 0.015 * abs(level) + 4.0 * error:
        return None
    return Plateau(level, start, scatter, error)


def explain(run: Run, series: Series) -> Match | None:
    """The constant that explains this loss, the best supported first, or None."""
    if len(series) < 4 or is_adversarial(run) or (is_reinforcement(run) and series.group == "train"):
        return None
    c = curve(series)
    for find in (target_variance, clipped_certainty, double_softmax, uniform):
        match = find(run, c)
        if match is not None:
            return match
    return None


def uniform(run: Run, c: Curve) -> Match | None:
    """A cross entropy that stays at ln C: the model says the same for every input."""
    flat = plateau(c)
    if flat is None or not 0.5 < flat.level < 20.0 or _is_squared(c.series):
        return None
    measured = accuracy(run, c.series.group) or accuracy(run, "train", "validation", "test")
    level = tail(measured.values) if measured is not None else None
    from_start = abs(head(c.values) - flat.level) <= 0.05 * flat.level + 3.0 * flat.scatter
    unguided = from_start and trend(c.values) > -3.0 and not continues_earlier_run(run, c.series)
    for count, agrees, tolerance in _uniform_candidates(run, flat.level, level):
        expected = uniform_guess(count)
        slack = min(3.0 * flat.error, (0.01 if agrees else 0.001) * expected)
        near = abs(flat.level - expected) <= tolerance * expected + slack
        better = level is not None and level > 1.35 / count + 0.02
        certain = bool(agrees) or (unguided and flat.error <= COIN_TOLERANCE * expected)
        if near and not better and certain:
            start, end = c.where(flat.start, len(c) - 1)
            return Match("uniform-guess", expected, flat.level, start, end, from_start, count, level, agrees)
    return None


def _uniform_candidates(run: Run, level: float, acc: float | None) -> Iterator[tuple[int, tuple[str, ...], float]]:
    stated = class_counts(run)
    nearest = round(math.exp(level))
    for known in sorted(stated, key=lambda k: abs(uniform_guess(k.count) - level)):
        tolerance = KNOWN_TOLERANCE / 2 if acc is None else KNOWN_TOLERANCE
        yield known.count, (known.why, *_chance(acc, known.count)), tolerance
    if acc is not None and acc > 0.0:
        for count in sorted({nearest, round(1.0 / max(acc, 1e-6))} & set(range(2, 1001))):
            if _chance(acc, count):
                yield count, _chance(acc, count), KNOWN_TOLERANCE
    yield 2, (), COIN_TOLERANCE
    if not stated:
        for count in (*GUESSED_COUNTS, *USUAL_COUNTS):
            yield count, (), GUESSED_TOLERANCE


def _chance(acc: float | None, count: int) -> tuple[str, ...]:
    """The accuracy as a witness, where it lies within 15 % of 1 / C."""
    near = acc is not None and abs(acc - 1.0 / count) <= 0.15 / count
    return (f"accuracy is {percent(acc or 0.0)}, chance is {percent(1.0 / count)}",) if near else ()


def double_softmax(run: Run, c: Curve) -> Match | None:
    """A cross entropy that settles on -ln(e / (e + C - 1)) + (1 - accuracy): probabilities were fed as logits.

    A wrong answer given with certainty costs exactly one nat more than a right one, hence the term in the accuracy.
    """
    measured = accuracy(run, c.series.group)
    if measured is None or len(c) < 4 or _is_squared(c.series):
        return None
    acc = aligned(measured, c)[-tail_count(len(c)):]
    values = c.values[-tail_count(len(c)):]
    level, share = median(values), median(acc)
    excess = median(values - (1.0 - acc))
    rising = level > 1.02 * float(smooth(c.values).min()) + 3.0 * noise(c.values)
    if rising or level <= 0.25 or spread(values) > 0.05 * level + 0.02:
        return None
    for count, agrees, tolerance in _softmax_candidates(run, c, share):
        floor = double_softmax_floor(count)
        expected = floor + 1.0 - share
        above_floor = float(values.min()) >= 0.995 * floor
        honest = max(calibrated_loss(share, count), _smoothing_floor(run, count))
        if above_floor and -0.005 * floor <= excess - floor <= tolerance * floor and level > 1.15 * honest + 0.02:
            start, end = c.where(max(0, len(c) - max(tail_count(len(c)), len(c) // 2)), len(c) - 1)
            return Match("double-softmax", expected, level, start, end, False, count, share, agrees)
    return None


def clipped_certainty(run: Run, c: Curve) -> Match | None:
    """A cross entropy at the error rate times its own bound: all outputs are 0 or 1, and the wrong ones cost the most.

    An honest model is never so sure: the mean wrong answer costs it one or two nats, not sixteen.
    """
    flat, measured = plateau(c), accuracy(run, c.series.group)
    if flat is None or measured is None or flat.level <= 0.1 or _is_squared(c.series):
        return None
    acc = tail(measured.values)
    wrong = 1.0 - (acc if acc <= 1.0 else acc / 100.0)
    if not 0.01 < wrong < 1.0:
        return None
    for which, bound in BOUNDS.items():
        if abs(flat.level / (wrong * bound) - 1.0) <= BOUND_TOLERANCE + 1e-4 / wrong:
            start, end = c.where(flat.start, len(c) - 1)
            return Match("clipped-certainty", wrong * bound, flat.level, start, end, True, None, 1.0 - wrong,
                         (f"{number(flat.level)} is {percent(wrong)} of {number(bound)}, -ln of {which}",))
    return None


def _softmax_candidates(run: Run, c: Curve, acc: float) -> Iterator[tuple[int, tuple[str, ...], float]]:
    for known in class_counts(run):
        if known.count <= 10_000:
            yield known.count, (known.why,), 0.04
    first = float(c.values[0])
    start = round(math.exp(first)) if 0.5 < first < 9.0 else 0
    if start >= 2 and abs(first - uniform_guess(start)) <= 0.01 * first:
        yield start, (f"the loss starts at {number(first)} = ln({start})",), 0.03
    if acc >= 0.97:
        for count in SMALL_COUNTS:
            yield count, (), 0.03 if count <= 5 else 0.015


def _smoothing_floor(run: Run, count: int) -> float:
    smoothing = setting(run.config, "labelsmoothing", "smoothing", "labelsmoothingfactor")
    return 0.0 if smoothing is None else smoothed_floor(count, smoothing[1])


_SQUARED = re.compile(r"mse|l2|square|rmse|mae|l1|recon|elbo|huber|chamfer")
_VARIANCE = re.compile(r"(?:data|target|label|y)_?var(?:iance)?$|^var(?:iance)?_(?:y|target|targets|data|labels?)$")


def _is_squared(series: Series) -> bool:
    return bool(_SQUARED.search(series.name) or _SQUARED.search(series.original.lower()))


def target_variance(run: Run, c: Curve) -> Match | None:
    """A squared error that stays at the variance of the target: the model predicts the mean, R2 is about 0."""
    flat = plateau(c)
    if flat is None or flat.level <= 0.0:
        return None
    from_start = abs(head(c.values) - flat.level) <= 0.1 * flat.level + 3.0 * flat.scatter
    start, end = c.where(flat.start, len(c) - 1)
    agrees, expected = _variance_witnesses(run, c, flat.level)
    if not agrees:
        return None
    return Match("target-variance", expected, flat.level, start, end, from_start, agrees=agrees)


def _variance_witnesses(run: Run, c: Curve, level: float) -> tuple[tuple[str, ...], float]:
    agrees: list[str] = []
    expected = level
    variances = logged_variances(run)
    for name, variance in variances:
        if abs(level / variance - 1.0) <= 0.05:
            agrees.append(f"{name} is {number(variance)}")
            expected = variance
    for score in _scores(run, c.series.group):
        r2 = curve(score)
        if len(r2) and -0.1 <= tail(r2.values) <= 0.1 and float(r2.values.max()) < 0.3:
            agrees.append(f"R2 is {number(tail(r2.values))}")
            expected = ratio(level, max(1.0 - tail(r2.values), 0.5)) if not variances else expected
            break
    stated = setting(run.config, "targetvariance", "targetvar", "datavar", "datavariance")
    if stated is not None and stated[1] > 0 and abs(level / stated[1] - 1.0) <= 0.05:
        agrees.append(f"{stated[0]} = {number(stated[1])} in the configuration")
        expected = stated[1]
    return tuple(agrees), expected


def logged_variances(run: Run) -> list[tuple[str, float]]:
    """Variances of the target that the log itself prints: name and level, those above zero."""
    found = [curve(s) for s in run.series if _VARIANCE.search(key_with_underscores(s.original)) and len(s)]
    return [(c.series.original, tail(c.values)) for c in found if len(c) and tail(c.values) > 1e-12]


def _scores(run: Run, group: str) -> Iterable[Series]:
    return sorted(run.find("r2"), key=lambda s: s.group != group)


def key_with_underscores(name: str) -> str:
    """A metric's name in lower case with everything but letters and digits as underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")

