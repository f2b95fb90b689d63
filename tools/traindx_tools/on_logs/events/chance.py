"""How sure it is that something goes ahead of anomalies, against chance and over all that was compared.

Times are records of the series. For a candidate and a window of lags, X of k anomalies have an occurrence in the
window. By chance each has one with the share of nearby records of which that holds (within `NEARBY` records: what
happens only while anomalies are frequent counts as frequent there); X is then at most binomial with the mean share
(Hoeffding 1956), and its tail at most exp(-k KL(X/k, p)) (Chernoff). All lags and widths are scanned; the number of
windows and of candidates is taken into account twice: by Bonferroni on that bound (Holm for those that follow), and by
the largest score of all candidates under displacement of the anomalies: bursts of them move as one, each by a random
number of records within `NEARBY`, which keeps what is autocorrelated or frequent in a period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.run import Floats, Ints

MOST_LAG = 200
"""Records between an occurrence and the anomaly at most."""
WIDTHS = (1, 3, 7, 21)
"""Lags in a window that begins anywhere."""
REACHES = (0, 1, 3, 10, 30, 100, 200)
"""Windows from the anomaly itself back to here."""
NEARBY, PART = 300, 20
"""Records, or a 20th of the series where that is more, over which chance is taken and anomalies are displaced."""
BURST = 20
"""Records between anomalies of one burst."""
DENSE = 0.4
"""Share of records with an occurrence from which a candidate cannot tell anything."""
DISPLACED = 199
NARROW, BACK = 2.0 * len(WIDTHS) * (MOST_LAG + 1), 2.0 * len(REACHES)
"""Windows of each of the two sorts, each sort with half of the chance."""


@dataclass(frozen=True, eq=False)
class Anomalies:
    """`at`: the records, ascending. `moved`: the same under each displacement. `records`: of the series."""

    at: Ints
    moved: Ints
    records: int

    @property
    def nearby(self) -> int:
        """Records around an anomaly over which chance is taken."""
        return min(max(NEARBY, self.records // PART), self.records)


@dataclass(frozen=True, eq=False)
class Scanned:
    """The best window of a candidate: `near` to `far` records before the anomaly. `moved`: its best score under each
    displacement. `score`: minus the logarithm of the bound, less that of the windows looked at."""

    score: float
    near: int
    far: int
    share: float
    moved: Floats


def displaced(at: Ints, records: int, seed: int = 0) -> Anomalies:
    """The anomalies with their displacements."""
    rng = np.random.default_rng(seed)
    near = min(max(NEARBY, records // PART), records)
    burst = np.concatenate([[0], np.cumsum(np.diff(at) > BURST)])
    by = rng.integers(-near, near + 1, size=(DISPLACED, int(burst[-1]) + 1))[:, burst]
    moved = np.abs(at[None, :] + by)
    return Anomalies(at, np.where(moved >= records, 2 * (records - 1) - moved, moved).clip(0), records)


def scan(anomalies: Anomalies, times: Ints) -> Scanned | None:
    """The best window of something that occurs at these records (each once, ascending)."""
    k = len(anomalies.at)
    if len(times) > DENSE * anomalies.records or not len(times):
        return None
    every = np.concatenate([anomalies.at[None, :], anomalies.moved])
    narrow = _lagged(every, times)
    last = np.searchsorted(times, every, side="right") - 1
    back = np.where(last >= 0, every - times[np.maximum(last, 0)], MOST_LAG + 1)
    best = np.zeros(len(every))
    chosen = (0, 0, 1.0)
    for far in REACHES:
        p = _share(anomalies, times, far + 1)
        score = _scores(k, p, BACK)[(back <= far).sum(axis=1)]
        chosen = (0, far, p) if score[0] > best[0] else chosen
        best = np.maximum(best, score)
    for width in WIDTHS:
        p = _share(anomalies, times, width)
        score = _scores(k, p, NARROW)[_windows(narrow, width).clip(max=k)]
        at = int(score[0].argmax())
        chosen = (at, at + width - 1, p) if score[0, at] > best[0] else chosen
        best = np.maximum(best, score.max(axis=1))
    return Scanned(float(best[0]), chosen[0], chosen[1], chosen[2], best[1:])


def followed(at: Ints, times: Ints, near: int, far: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of the records `at` have an occurrence `near` to `far` records before."""
    return np.asarray(np.searchsorted(times, at - near, side="right") > np.searchsorted(times, at - far, side="left"))


def bound(hits: int, k: int, p: float) -> float:
    """The logarithm of the bound on the chance of `hits` or more of `k`."""
    return -float(_scores(k, p, 1.0)[hits])


def _scores(k: int, p: float, windows: float) -> Floats:
    x = np.arange(k + 1) / k
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(x > 0, x * np.log(x / p), 0.0) + np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - p)), 0.0)
    return np.maximum(np.where(x > p, k * kl, 0.0) - np.log(windows), 0.0)


def _share(anomalies: Anomalies, times: Ints, width: int) -> float:
    """The share of records near the anomalies that have an occurrence in a window of so many lags."""
    n = anomalies.records
    steps = np.zeros(n + width + 1)
    np.add.at(steps, times, 1.0)
    np.add.at(steps, times + width, -1.0)
    covered = np.concatenate([[0.0], np.cumsum(np.cumsum(steps)[:n] > 0)])
    reach = anomalies.nearby
    low, high = (anomalies.at - reach).clip(0), (anomalies.at + reach + 1).clip(max=n)
    shares = (covered[high] - covered[low] + 1.0) / (high - low + 2.0)
    return float(shares.mean())


def _lagged(every: Ints, times: Ints) -> Ints:
    """How many pairs there are of each lag, for the anomalies and each displacement of them."""
    first = np.searchsorted(times, every - MOST_LAG - WIDTHS[-1], side="left")
    count = np.searchsorted(times, every, side="right") - first
    rows = np.repeat(np.arange(len(every)), count.sum(axis=1))
    flat, starts = count.ravel(), first.ravel()
    inner = np.arange(int(flat.sum())) - np.repeat(np.cumsum(flat) - flat, flat)
    lag = np.repeat(every.ravel(), flat) - times[np.repeat(starts, flat) + inner]
    size = MOST_LAG + WIDTHS[-1] + 1
    return np.bincount(rows * size + lag, minlength=len(every) * size).reshape(len(every), size)


def _windows(lags: Ints, width: int) -> Ints:
    """Pairs in the window that begins at each lag."""
    total = np.concatenate([np.zeros((len(lags), 1), dtype=np.int64), np.cumsum(lags, axis=1)], axis=1)
    return total[:, width: width + MOST_LAG + 1] - total[:, : MOST_LAG + 1]
