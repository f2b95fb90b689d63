"""A few values are larger than everything else in their field, and no tail of the field leads to them.

Heavy tails are normal, so a threshold on the size alone would be wrong. What is tested is the gap: in a distribution
whose tail falls like a power, the log of the ratio of the m-th to the next value is exponential with rate m times the
tail's exponent (Renyi, 1953). The exponent is Hill's estimate from the values below the gap. A gap counts where its
chance, times all places and fields that were compared, is below the level, and the ratio is at least ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import number, of, place, rows
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.summary import MOST_COLUMNS
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RATIO = 10.0
MOST_SHARE = 0.01
FEWEST = 200
MODE = 10
NARROWER = 0.5

RULE = Rule(
    id="D102",
    name="extreme-rows",
    title="A few values are far beyond all others",
    severity=Severity.MEDIUM,
    sees="the largest distances to the median of each field, and of each feature of a table",
    matters="One such row gives a gradient that undoes the work of many steps, and a scale that flattens all others.",
    alike=("A heavy tail leads to its extremes without a gap.", "A feature that is nearly always 0.",
           "A second mode: requests that ran into a timeout among those that did not (a remark)."),
    confirm=("Print the named rows: a sensor's overflow, a sum row, a missing value written as 9999, another unit.",),
    thresholds={
        "ratio": Threshold(RATIO, "times the next largest", "a factor of ten is what a wrong unit makes at least"),
        "most_share": Threshold(MOST_SHARE, "share of rows", "more rows are no exceptions but a part of the data"),
        "mode": Threshold(MODE, "far rows", "with values of their own that lie close together: a second mode"),
        "narrower": Threshold(NARROWER, "of the spread of the others' logarithms, at most",
                              "a wrong unit keeps that spread"),
        "level": Threshold(LEVEL, "probability", "of one false alarm in all fields and gaps together"),
    },
)


@dataclass(frozen=True)
class Gap:
    """`count` values lie beyond a gap of `ratio`; `p`: its chance."""

    count: int
    ratio: float
    p: float
    bound: float
    """The size beyond which they lie."""


def gap_in(sizes: Array) -> Gap | None:
    """The least likely gap among the largest values. `sizes`: distances to the centre, any order, shape (n,)."""
    most = max(1, int(MOST_SHARE * len(sizes)))
    tail = min(len(sizes) // 2, max(50, len(sizes) // 10) + most)
    if len(sizes) < FEWEST:
        return None
    top = np.sort(np.partition(sizes, len(sizes) - tail)[-tail:])[::-1]
    if top[-1] <= 0.0 or len(np.unique(top[most:])) < 20:
        return None  # nearly always the same value: what else occurs is rare, and that says nothing of a tail
    logs = np.log(top)
    best: Gap | None = None
    for m in range(1, most + 1):
        ratio = float(logs[m - 1] - logs[m])
        if ratio < math.log(RATIO):
            continue
        hill = float(np.mean(logs[m:-1] - logs[-1])) if len(logs) - m > 20 else math.inf
        p = math.exp(-min(700.0, m * ratio / max(hill, 1e-3))) * most
        if best is None or p < best.p:
            best = Gap(m, math.exp(ratio), p, float(top[m]))
    return best


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and shard; of a table for the feature that is farthest out."""
    for data in view.sets:
        labels = data.labels
        for shard in data.shards:
            for name, column in shard.columns.items():
                if (
                    column.kind == "number"
                    and name not in labels
                    and shard.summaries[name].std > 0
                    and _may_have(shard, name)
                ):
                    yield from _of(shard, name, view.comparisons)


def _may_have(shard: Shard, name: str) -> bool:
    """Whether the extremes are so far out that a gap can be: cheap, and true of few fields."""
    seen = shard.summaries[name]
    centre = seen.quantile(0.5)
    inner = max(abs(seen.quantile(0.99) - centre), abs(seen.quantile(0.01) - centre), 1e-300)
    per_feature = seen.column_means is not None
    return per_feature or max(abs(seen.high - centre), abs(seen.low - centre)) > RATIO * inner


def _of(shard: Shard, name: str, comparisons: int) -> Iterator[Finding]:
    values = np.asarray(shard.columns[name].values)
    flat = values.reshape(len(values), -1)
    by_feature = 1 < flat.shape[1] <= MOST_COLUMNS and values.ndim == 2
    columns = range(flat.shape[1]) if by_feature else [None]
    found: list[tuple[Gap, int | None, Array]] = []
    may = _far_out(flat) if by_feature else np.ones(1, bool)
    for feature in (c for c in columns if c is None or may[c]):
        part = (flat if feature is None else flat[:, [feature]]).astype(np.float64)
        part = np.where(np.isfinite(part), part, np.nan)
        sizes = np.abs(part - np.nanmedian(part)) if np.isfinite(part).any() else part
        by_row = np.nan_to_num(np.nanmax(np.nan_to_num(sizes, nan=0.0), axis=1))
        gap = gap_in(by_row)
        if gap is not None and gap.p * comparisons * len(columns) < LEVEL and not _one_number(part, by_row > gap.bound):
            found.append((gap, feature, np.flatnonzero(by_row > gap.bound)))
    if found:
        yield _finding(shard, name, *min(found, key=lambda f: -f[0].ratio), flat)


def _one_number(part: Array, beyond: Array) -> bool:
    """Whether what is beyond is one number that recurs: a mark for missing values, which D130 tells."""
    found = part[beyond].max(axis=1)
    return len(found) >= 3 and bool((found == found[0]).all()) and part.shape[1] == 1


def _second_mode(part: Array, beyond: Array) -> bool:
    """Whether what is far out is a mode of its own of a quantity that is never negative, as timeouts are of durations.

    A slip of the unit keeps the spread of the logarithms, an overflow is the same few numbers.
    """
    flat = part.reshape(-1).astype(np.float64)
    if part.size != len(beyond) or beyond.sum() < MODE or not np.nanmin(flat) >= 0.0:
        return False
    far, usual = np.log(flat[beyond & (flat > 0)]), np.log(flat[~beyond & (flat > 0)])
    own = len(np.unique(far)) >= 0.8 * beyond.sum()
    return own and len(usual) > 0 and float(far.std()) <= NARROWER * float(usual.std())


def _far_out(flat: Array) -> Array:
    """bool shape (features,): whether the largest is as far out as a gap asks, by quantiles of some rows."""
    some = flat[:: max(1, len(flat) // 2000)].astype(np.float64)
    some = np.where(np.isfinite(some), some, np.nan)
    with np.errstate(all="ignore"):
        centre = np.nan_to_num(np.nanmedian(some, axis=0))
        inner = np.nan_to_num(np.nanquantile(np.abs(some - centre), 1.0 - 2 * MOST_SHARE, axis=0))
    high, low = np.fmax.reduce(flat, axis=0), np.fmin.reduce(flat, axis=0)
    return np.asarray(np.fmax(np.abs(high - centre), np.abs(low - centre)) > RATIO * inner)


def _finding(shard: Shard, name: str, gap: Gap, feature: int | None, where: Array, flat: Array) -> Finding:
    values = flat[where] if feature is None else flat[where, feature]
    worst = float(values.reshape(-1)[int(np.nanargmax(np.abs(values.astype(np.float64))))])
    beyond = np.zeros(len(flat), bool)
    beyond[where] = True
    mode = _second_mode(flat if feature is None else flat[:, [feature]], beyond)
    which = f"{of(name, shard)}" + (f", feature {feature}," if feature is not None else "")
    return RULE.finding(
        f"{which} has {gap.count} row{'s' * (gap.count != 1)} at least {number(gap.ratio)} times as far out as "
        "all others "
        f"(up to {number(worst)}): {rows(shard, where)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.COMPANION if mode else Bearing.SIGN,
        severity=Severity.INFO if mode else Severity.HIGH if gap.ratio >= 100 else None,
        measured={
            "field": name,
            "feature": feature,
            "ratio": gap.ratio,
            "value": worst,
            "p": gap.p,
            "kind": "second-mode" if mode else "extreme",
            "rows": tuple(int(i) for i in where[:20]),
        },
    )
