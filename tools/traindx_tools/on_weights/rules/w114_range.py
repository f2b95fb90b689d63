"""Values at the edge of what a type holds: near half precision's largest number, below its smallest, or torn out.

In float16 nothing above 65504 exists: values at it were cut, values near it overflow with the next update, and values
of a wider type above it do when they are cast. Values below the smallest normal number lose digits and at last are
zero. A single value that is thousands of times the next ones is no tail of a distribution: a flipped bit, or an update
that went wrong. How far above the rest it has to stand goes by the rest: what spans many powers of ten itself, such as
counts of codes that decay since they were last taken, reaches far by nature; and a channel that is large in several
vectors is a quantity in another unit, no accident of one value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import as_numbers
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W114",
    name="range-of-type",
    title="Values lie at the edge of their type",
    severity=Severity.HIGH,
    sees="The largest magnitudes of each tensor, and the share of values below the smallest normal number.",
    matters="In half precision the next update or product is inf, and what is small becomes zero.",
    alike=("masks of the type's smallest number", "heavy tails, whose largest values are many",
           "counts of a codebook of which few codes are used (W165)", "means and spreads of raw columns"),
    confirm=("cast the tensor to half precision and call isfinite().all()", "look at the value's neighbours"),
    thresholds={
        "half": Threshold(65504.0, "magnitude", "the largest float16, IEEE 754"),
        "near": Threshold(0.5, "of it", "one doubling is left"),
        "torn": Threshold(1000.0, "times the tenth largest value", "Student's t with two degrees of freedom reaches "
                                                                   "that "
                          "once in a million tensors"),
        "spans": Threshold(1.5, "times the powers of ten that the rest spans from its tenth percentile to its tenth "
                                "largest value", "by so much a torn value stands above it, at least"),
        "denormal": Threshold(0.2, "share of the values that are not zero", "weights of a trained model have none in "
                                                                            "float32"),
    },
)
_HALF, _NEAR, _TORN, _DENORMAL = 65504.0, 0.5, 1000.0, 0.2
_SPANS = 1.5
_ELSEWHERE = 100.0
"""Times the usual magnitude of another vector, from which on the same place is large there too."""
_VECTORS = 256
"""Vectors of one length that are asked for the same place."""


def check(seen: Seen) -> Iterator[Finding]:
    """Every floating tensor that is no table or mask."""
    for stats in seen.floats:
        if seen.is_table(stats) or stats.constant or not stats.finite:
            continue
        torn = _torn(stats)
        if torn is not None and not _by_nature(seen, stats, torn[0]):
            yield torn_out(seen, stats, *torn)
        elif stats.tensor.dtype == "float16" and stats.largest >= _NEAR * _HALF:
            cut = " (cut off there)" if stats.largest == _HALF else ""
            yield _finding(seen, stats, f"a value of {stats.largest:.6g}{cut} in float16, of which the largest is "
                                        "65504",
                           "near", None)
        elif stats.tensor.dtype in ("float32", "bfloat16") and stats.largest > _HALF and stats.tensor.matrix:
            yield _finding(seen, stats, f"values up to {stats.largest:.4g}: above 65504, inf in float16", "above",
                           Severity.MEDIUM)
        yield from _denormal(seen, stats)


def _denormal(seen: Seen, stats: Stats) -> Iterator[Finding]:
    share = stats.denormal_share / max(1e-9, 1 - stats.zero_share)
    if share > _DENORMAL and stats.tensor.matrix and stats.zero_share < 0.99:
        stack = seen.stack_of.get(stats.name)
        usual = float(np.median([s.denormal_share for s in stack.members])) if stack else 0.0
        half = stats.tensor.dtype == "float16"
        yield _finding(seen, stats, f"{share:.0%} of its values below the smallest normal {stats.tensor.dtype}: they "
                                    "have "
                       "lost digits and the next step down is zero", "denormal",
                       Severity.INFO if usual > _DENORMAL / 2 and not half else Severity.MEDIUM)


def _torn(stats: Stats) -> tuple[int, float, float] | None:
    """Index and size of values that stand alone, and the largest of the rest; None where there are none."""
    if stats.size < 64 or stats.largest <= 100 * _typical(stats):
        return None
    top = _largest(stats, 10)
    rest = top[-1][1]
    if top[0][1] < _TORN * rest or rest == 0 or math.log10(top[0][1] / rest) < _SPANS * _decades(stats, rest):
        return None
    return top[0][0], top[0][1], rest


def _decades(stats: Stats, rest: float) -> float:
    """The powers of ten between the tenth percentile of what is not 0 and `rest`, inf where all of that is one number.

    A constant 1 is a scale at its beginning; another one is what decayed from a common start.
    """
    values = np.abs(stats.sample[np.isfinite(stats.sample)]).astype(np.float64)
    values = values[(values > 0) & (values <= rest)]
    if not len(values):
        return 0.0
    if values.min() == values.max() != 1:
        return math.inf
    return max(0.0, math.log10(rest / float(np.quantile(values, 0.1))))


def _by_nature(seen: Seen, stats: Stats, index: int) -> bool:
    """Whether it is a count or sum of a codebook, or a vector whose place `index` is large in another one as well."""
    if any(stats is one for made in seen.weighted_sums for one in (made.count, made.sums)):
        return True
    if len(stats.tensor.shape) != 1:
        return False
    alike = [s for s in seen.floats if s.tensor.shape == stats.tensor.shape and s is not stats]
    for other in alike[:_VECTORS]:
        value = abs(float(other.tensor.load().astype(np.float64)[index]))
        if math.isfinite(value) and value > _ELSEWHERE * _typical(other) > 0:
            return True
    return False


def _typical(stats: Stats) -> float:
    """The magnitude of a usual value that is not 0, which a few torn ones do not move."""
    values = np.abs(stats.sample[np.isfinite(stats.sample)])
    return float(np.median(values[values > 0])) if (values > 0).any() else 0.0


def _largest(stats: Stats, count: int) -> list[tuple[int, float]]:
    """Index and magnitude of the largest finite values, the largest first."""
    best: list[tuple[float, int]] = []
    at = 0
    for stored in stats.tensor.raw():
        values = np.nan_to_num(np.abs(as_numbers(stored, stats.tensor.dtype)), nan=0.0, posinf=0.0)
        some = np.argpartition(values, -min(count, len(values)))[-count:]
        best = sorted([*best, *((float(values[i]), at + int(i)) for i in some)], reverse=True)[:count]
        at += len(stored)
    return [(i, v) for v, i in best]


def torn_out(seen: Seen, stats: Stats, index: int, value: float, rest: float) -> Finding:
    """A value that no distribution explains."""
    place = ", ".join(str(int(i)) for i in np.unravel_index(index, stats.tensor.shape))
    return _finding(seen, stats, f"a value of magnitude {value:.4g} at [{place}] where the tenth largest is {rest:.4g}",
                    "torn", None)


def _finding(seen: Seen, stats: Stats, what: str, kind: str, severity: Severity | None) -> Finding:
    return RULE.finding(
        f"{stats.name} in {seen.path} has {what}", seen.where(stats.name), seen.path,
        bearing=Bearing.CAUSE if kind in ("torn", "near") else Bearing.SIGN, severity=severity,
        measured={"name": stats.name, "kind": kind, "largest": stats.largest, "type": stats.tensor.dtype})
