"""Tail probabilities of the tests, and what is asked of them where many things are compared.

Every observation divides its level by the number of comparisons (shards x fields), as Bonferroni does: valid under any
dependence, and data files are dependent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array

LEVEL = 1e-3
"""Chance of one false alarm in a whole data set, per observation. Ten observations: one of a hundred healthy sets."""


BOUND = 1.2816
"""Standard deviations of a one-sided bound at 0.10, the tail of `benchmarks/measure_precision.py` as well."""


def share_bound(hits: int, rows: int) -> float:
    """The lower bound of a share that was seen in so many rows (Wilson's interval, one side, 0.10); 0 without rows."""
    if rows < 1 or hits <= 0:
        return 0.0
    share, z = hits / rows, BOUND * BOUND / rows
    spread = BOUND * math.sqrt((share * (1.0 - share) + z / 4.0) / rows)
    return max(0.0, (share + z / 2.0 - spread) / (1.0 + z))


REACH, NOISE = 400, 3.0
"""Rows apart up to which dependence is looked for, and standard deviations from which on it is not chance."""


def independent_share(values: Array) -> float:
    """How many independent rows one of these counts for: the inverse of one plus twice the sum of autocorrelations.

    Rows of several series in turn depend on each other at the distance of a turn and its multiples, and not beside
    each other. `values`: shape (rows,). At most 1: what alternates counts as independent. The estimate is that of
    Monte Carlo's integrated autocorrelation time (Sokal 1997), with a threshold of noise in place of a window.
    """
    own = np.asarray(values, np.float64) - float(np.mean(values)) if len(values) else np.zeros(0)
    size = len(own)
    whole = float((own**2).sum())
    if size < 8 or whole <= 0:
        return 1.0
    spectrum = np.abs(np.fft.rfft(own, 2 * size)) ** 2
    lags = np.fft.irfft(spectrum)[1: 1 + min(REACH, size // 4)] / whole
    return 1.0 / (1.0 + 2.0 * float(lags[lags > NOISE / math.sqrt(size)].sum()))


def normal_tail(z: float) -> float:
    """P(Z > z) of the standard normal distribution."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def chi2_tail(x: float, df: float) -> float:
    """P(X > x) of the chi-square distribution with `df` degrees of freedom (regularised upper incomplete gamma)."""
    if x <= 0.0:
        return 1.0
    a, y = df / 2.0, x / 2.0
    scale = math.exp(max(-745.0, a * math.log(y) - y - math.lgamma(a)))
    return 1.0 - scale * _series(a, y) if y < a + 1.0 else scale * _fraction(a, y)


def _series(a: float, y: float) -> float:
    term = total = 1.0 / a
    for n in range(1, 10_000):
        term *= y / (a + n)
        total += term
        if term < total * 1e-14:
            break
    return total


def _fraction(a: float, y: float) -> float:
    """Lentz's continued fraction of the upper incomplete gamma function."""
    b = y + 1.0 - a
    c, d = 1e300, 1.0 / b
    out = d
    for n in range(1, 10_000):
        step = -n * (n - a)
        b += 2.0
        d = 1.0 / (step * d + b or 1e-300)
        c = b + step / c or 1e-300
        out *= d * c
        if abs(d * c - 1.0) < 1e-13:
            break
    return out


def student_tail(t: float, df: float) -> float:
    """P(T > t) of Student's distribution with `df` degrees of freedom, t >= 0."""
    return 0.5 * _incomplete_beta(df / 2.0, 0.5, df / (df + t * t))


def f_tail(ratio: float, above: float, below: float) -> float:
    """P(F > ratio) of Fisher's distribution with `above` and `below` degrees of freedom."""
    if ratio <= 0.0:
        return 1.0
    return _incomplete_beta(below / 2.0, above / 2.0, below / (below + above * ratio))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or 1e-300)
    out = d
    for m in range(1, 1000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + step * d or 1e-300)
            c = 1.0 + step / c or 1e-300
            out *= d * c
        if abs(d * c - 1.0) < 1e-13:
            break
    return front * out / a


def share_tail(hits: int, of: int, share: float) -> float:
    """A bound on P(at least `hits` of `of`) where each has the chance `share`.

    Chernoff's bound exp(-n KL) is never below the exact binomial tail, so what it calls significant is.
    """
    if hits <= of * share or of == 0:
        return 1.0
    if share <= 0.0:
        return 0.0
    seen = hits / of
    divergence = seen * math.log(seen / share) + ((1 - seen) * math.log((1 - seen) / (1 - share)) if seen < 1 else 0.0)
    return math.exp(max(-745.0, -of * divergence))


def paired_tail(gained: int, lost: int) -> float:
    """McNemar's test: the chance of `gained` against `lost` where both are as likely."""
    return share_tail(gained, gained + lost, 0.5)


def distance(a: Array, b: Array) -> float:
    """The largest distance of two empirical distribution functions (sorted values): Kolmogorov and Smirnov's.

    Their difference is largest at a value of the one, or smallest right before it: those of the shorter are looked at.
    """
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    if not len(few):
        return math.nan
    places = np.arange(len(few) + 1) / len(few)
    above = places[1:] - np.searchsorted(many, few, "right") / len(many)
    below = np.searchsorted(many, few, "left") / len(many) - places[:-1]
    return float(max(above.max(), below.max()))


GRID = 64
"""Values of each part at which distribution functions are looked at first."""


def distance_bounds(parts: Sequence[Array]) -> Array:
    """float64 shape (parts,): no distance of a part (sorted values) from all others together is larger. Cheap.

    Between two neighbouring points of a grid neither distribution function leaves what it has at these points.
    """
    grid = np.sort(np.concatenate([p[:: max(1, len(p) // GRID)] for p in parts]))
    sizes = np.array([[len(p)] for p in parts], np.float64)
    upto = np.stack([np.concatenate([[0], np.searchsorted(p, grid, "right")]) for p in parts])
    before = np.stack([np.concatenate([np.searchsorted(p, grid, "left"), [len(p)]]) for p in parts])
    low, high = ((c / sizes, (c.sum(axis=0) - c) / (sizes.sum() - sizes)) for c in (upto, before))
    return np.asarray(np.maximum(high[0] - low[1], high[1] - low[0]).max(axis=1) + 1e-9)


def distance_tail(apart: float, m: int, n: int) -> float:
    """Massart's bound on the tail of that distance of two samples of `m` and `n` values."""
    return min(1.0, 2.0 * math.exp(-2.0 * apart**2 * m * n / (m + n)))
