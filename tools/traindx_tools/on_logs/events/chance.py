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
DENSE = 0.25
"""Share of records with an occurrence from which a candidate cannot tell anything."""
USELESS = 0.8
"""Chance of one anomaly to have it by which nothing can be told."""
DISPLACED = 119
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
    """The best window of a candidate: `near` to `far` records before the anomaly. `score`: minus the logarithm of the
    bound, less that of the windows looked at. `share`: the chance of one anomaly to have it."""

    score: float
    near: int
    far: int
    share: float


def displaced(at: Ints, records: int, seed: int = 0) -> Anomalies:
    """The anomalies with their displacements."""
    rng = np.random.default_rng(seed)
    near = min(max(NEARBY, records // PART), records)
    burst = np.concatenate([[0], np.cumsum(np.diff(at) > BURST)])
    by = rng.integers(-near, near + 1, size=(DISPLACED, int(burst[-1]) + 1))[:, burst]
    moved = np.abs(at[None, :] + by)
    return Anomalies(at, np.where(moved >= records, 2 * (records - 1) - moved, moved).clip(0), records)


def scan(anomalies: Anomalies, times: Ints) -> Scanned | None:
    """The best window of something that occurs at these records (each once, ascending); None of what is everywhere."""
    if len(times) > DENSE * anomalies.records or not len(times):
        return None
    shares = _shares(anomalies, times)
    scores = _scores_by_window(anomalies, anomalies.at[None, :], times, shares)[:, 0]
    best = int(scores.argmax())
    sort, at = divmod(best - len(REACHES), MOST_LAG + 1)
    if best < len(REACHES):
        return Scanned(float(scores[best]), 0, REACHES[best], float(shares[best]))
    return Scanned(float(scores[best]), at, at + WIDTHS[sort] - 1, float(shares[len(REACHES) + sort]))


def scores_displaced(anomalies: Anomalies, times: Ints) -> Floats:
    """The best score of the same under each displacement."""
    shares = _shares(anomalies, times)
    return np.asarray(_scores_by_window(anomalies, anomalies.moved, times, shares).max(axis=0))


def _scores_by_window(anomalies: Anomalies, every: Ints, times: Ints, shares: Floats) -> Floats:
    """The score of each window, those from the anomaly back first, then each lag of each width, by row of anomalies."""
    k = len(anomalies.at)
    tables = _tables(k, shares)
    last = np.searchsorted(times, every, side="right") - 1
    back = np.where(last >= 0, every - times[np.maximum(last, 0)], MOST_LAG + 1)
    hits = (back[None] <= np.array(REACHES)[:, None, None]).sum(axis=2)
    out = [np.take_along_axis(tables[: len(REACHES)], hits, axis=1)]
    lags = _lagged(every, times)
    total = np.zeros((len(every), lags.shape[1] + 1), dtype=np.int64)
    np.cumsum(lags, axis=1, out=total[:, 1:])
    for sort, width in enumerate(WIDTHS):
        pairs = total[:, width: width + MOST_LAG + 1] - total[:, : MOST_LAG + 1]
        out.append(tables[len(REACHES) + sort][np.minimum(pairs, k)].T)
    return np.concatenate(out)


def followed(at: Ints, times: Ints, near: int, far: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of the records `at` have an occurrence `near` to `far` records before."""
    return np.asarray(np.searchsorted(times, at - near, side="right") > np.searchsorted(times, at - far, side="left"))


def bound(hits: int, k: int, p: float) -> float:
    """The logarithm of the bound on the chance of `hits` or more of `k`."""
    return -float(_divergences(k, np.array([p]))[0, hits])


def _tables(k: int, shares: Floats) -> Floats:
    """The score of each number of hits for each sort of window."""
    looked = np.log([BACK] * len(REACHES) + [NARROW] * len(WIDTHS))
    found = np.maximum(_divergences(k, np.minimum(shares, 0.999)) - looked[:, None], 0.0)
    found[shares >= USELESS] = 0.0
    return found


def _divergences(k: int, p: Floats) -> Floats:
    """k KL(x/k, p) for x of 0 to k, 0 where it is no more than expected."""
    x, p = (np.arange(k + 1) / k)[None, :], p[:, None]
    odds = x * np.log(np.maximum(x, 1e-12) / p) + (1 - x) * np.log(np.maximum(1 - x, 1e-12) / (1 - p))
    return np.where(x > p, k * odds, 0.0)


def _shares(anomalies: Anomalies, times: Ints) -> Floats:
    """The share of records near the anomalies that have an occurrence in a window, at most, for each sort of window.

    Occurrences nearby times the width: exact where windows do not overlap, and too much where they do.
    """
    width = np.array([far + 1 for far in REACHES] + list(WIDTHS))[:, None]
    reach = anomalies.nearby
    low, high = np.maximum(anomalies.at - reach, 0), np.minimum(anomalies.at + reach + 1, anomalies.records)
    before = np.searchsorted(times, low[None, :] - width + 1, side="left")
    count = np.searchsorted(times, high, side="left")[None, :] - before
    return np.asarray(np.minimum((count * width + 1.0) / (high - low + 2.0), 1.0).mean(axis=1))


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
