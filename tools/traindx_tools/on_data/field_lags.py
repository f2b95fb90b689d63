"""Parts of the rows in which a number fits its row better after moving it by a few rows, and in no other part.

What the other fields of a row say of a number (`row_fit.py`) is held against the number of this row and of its
neighbours. Everywhere the own one fits better; where a column was shifted (an index that was off by one, a lag that was
taken twice) a neighbour's does. Numbers that are a lag by design fit a neighbour's everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.shifted_stretch import FEWEST as SHORTEST
from traindx_tools.on_data.shifted_stretch import shifted_stretch, spreads_of
from traindx_tools.on_data.significance import LEVEL, independent_share, paired_tail
from traindx_tools.on_data.stretches import Stretch, commonest

LAGS = (1, -1, 2, -2, 3, -3)
FEWEST = 40
"""Rows of a part."""
OUTSIDE = 0.35
"""Share of the rows outside that a neighbour's number fits better, at most: by chance it is a half."""
REVERSED = 0.1
"""How far the same share within falls short of one less that outside: a shift turns all of it around."""
MOST_PART = 0.6
"""Share of all rows."""
SMOOTH = 0.9
"""Correlation of neighbours from which on numbers are a series."""
NEARLY = 0.05
"""Of the spread of the numbers, that those some rows away differ by, below which rows are in their order."""
AS_ELSEWHERE = 2.0
"""Times the usual distance of numbers elsewhere that those of the part are off after they are moved back, at most: a
number that runs on while the others stand still fits its neighbours better and none of them well."""
NEARER, GONE = 0.85, 1 / 3
"""Of the distance before, that is left after they are moved back, at most; and where they are near in any case."""
WHOLE = 0.95
"""Share of a file from which on a stretch is the file."""


@dataclass(frozen=True, eq=False)
class Lagged:
    """A stretch of shard `index`, all of it where `stretch` is None, or group `part` of a cut."""

    lag: int
    """Rows by which the numbers stand too late; negative: too early."""
    inside: float
    outside: float
    log_chance: float
    index: int = 0
    stretch: Stretch | None = None
    cut: Cut | None = None
    part: int = -1


def lagged(pairs: Sequence[Array], cuts: Sequence[Cut], comparisons: float) -> Lagged | None:
    """The surest part. `pairs`: float64 shape (rows, 2) of each shard, what the others say and the number.

    Rows must be all rows of a shard, in their order.
    """
    found = [f for lag in LAGS for f in _of_lag(pairs, lag, comparisons * len(LAGS))]
    found += [f for cut in cuts for lag in LAGS
              for f in _of_groups(pairs, cut, lag, comparisons * len(LAGS) * len(cuts) * len(cut.names))]
    return min(found, key=lambda f: (f.log_chance, -f.inside), default=None)


def changes_of(group: Sequence[Shard], fields: Sequence[str]) -> tuple[Shard, ...]:
    """The same files with the change from the row before in place of each number; () where numbers are no series."""
    out = []
    for shard in group:
        columns = {}
        for name in fields:
            column = shard.columns[name]
            if column.kind == "number" and column.values.dtype.kind in "iuf" and len(column.row_shape) < 2:
                values = np.asarray(column.values, np.float64)
                columns[name] = replace(column, values=np.diff(values, axis=0, prepend=values[:1]), missing=None)
        smooth = [_is_smooth(np.asarray(shard.columns[n].values, np.float64)) for n in columns]
        if sum(smooth) < 2:
            return ()
        out.append(replace(shard, columns=columns))
    return tuple(out)


def _is_smooth(values: Array) -> bool:
    flat = values.reshape(len(values), -1)
    around = np.nan_to_num(flat - np.nanmean(flat, axis=0))
    size = (around**2).sum(axis=0)
    near = (around[1:] * around[:-1]).sum(axis=0) / np.maximum(size, 1e-300)
    return bool(np.median(near) > SMOOTH)


def _in_order(values: Array, lag: int) -> bool:
    """Whether the rows are sorted by the number, or nearly: what is a few rows away is then nearly the same, and fits
    better on one side of the middle."""
    spread = float(np.subtract(*np.quantile(values, (0.75, 0.25)))) if len(values) else 0.0
    return spread > 0 and float(np.median(np.abs(values[abs(lag):] - values[: -abs(lag)]))) < NEARLY * spread


def _better(pairs: Array, lag: int) -> Array:
    """bool shape (rows,): whether the number `lag` rows behind fits what is said of a row better than its own."""
    said, value = pairs[:, 0], pairs[:, 1]
    out = np.zeros(len(pairs), bool)
    here = slice(None, -lag) if lag > 0 else slice(-lag, None)
    there = slice(lag, None) if lag > 0 else slice(None, lag)
    np.less(np.abs(said[here] - value[there]), np.abs(said - value)[here], out=out[here])
    return out


def _moved_back(pairs: Sequence[Array], index: int, inside: Array, lag: int) -> bool:
    """Whether the numbers of a part lie as near to what is said of them as elsewhere, once they are moved back."""
    own = pairs[index]
    rows = np.flatnonzero(inside)
    rows = rows[(rows + lag >= 0) & (rows + lag < len(own))]
    rest = np.concatenate([own[~inside], *(p for i, p in enumerate(pairs) if i != index)])
    usual = float(np.median(np.abs(rest[:, 0] - rest[:, 1]))) if len(rest) else 0.0
    after = float(np.median(np.abs(own[rows, 0] - own[rows + lag, 1]))) if len(rows) else 0.0
    before = float(np.median(np.abs(own[rows, 0] - own[rows, 1]))) if len(rows) else 0.0
    near = max(AS_ELSEWHERE * usual + 1e-9 * float(np.abs(own[:, 1]).max(initial=0.0)), GONE * before)
    return after <= min(near, NEARER * before)


def _of_lag(pairs: Sequence[Array], lag: int, comparisons: float) -> Iterator[Lagged]:
    better = [_better(p, lag) for p in pairs]
    total = sum(map(len, better))
    spreads_here: list[tuple[float, float] | None] = []
    for index, hits in enumerate(better):
        if _in_order(pairs[index][:, 1], lag):
            continue
        stretch = commonest(hits)
        more = 2 * int(np.count_nonzero(hits[stretch.start:stretch.end])) - stretch.rows
        if more >= SHORTEST // 2 and not spreads_here:
            spreads_here.append(spreads_of(pairs, lag))
        spreads = spreads_here[0] if more >= SHORTEST // 2 else None
        likely = shifted_stretch(pairs[index], lag, spreads, comparisons) if spreads is not None else None
        if likely is not None and likely.stretch.rows <= MOST_PART * total:
            inside = likely.stretch.inside(len(hits))
            rest = np.concatenate([hits[~inside], *(b for i, b in enumerate(better) if i != index)])
            within, without = float(hits[inside].mean()), float(rest.mean())
            if without <= OUTSIDE and within >= 1.0 - without - REVERSED and _moved_back(pairs, index, inside, lag):
                # else it is moved by other than this
                yield Lagged(lag, within, without, likely.log_chance, index, likely.stretch)
                continue
        if stretch.rows < FEWEST or stretch.rows > MOST_PART * total:
            continue
        inside = stretch.inside(len(hits))
        outside = np.concatenate([hits[~inside], *(b for i, b in enumerate(better) if i != index)])
        chance = _chance(hits[inside], outside, len(hits), comparisons)
        if chance is not None and _moved_back(pairs, index, inside, lag):
            whole = stretch.rows >= WHOLE * len(hits)
            yield Lagged(lag, float(hits[inside].mean()), float(outside.mean()), chance, index,
                         None if whole else stretch)


def _of_groups(pairs: Sequence[Array], cut: Cut, lag: int, comparisons: float) -> Iterator[Lagged]:
    """Groups whose rows, taken by themselves, fit their neighbours' of the same group."""
    every, member = np.concatenate(pairs), np.concatenate(cut.member)
    shares = {}
    for part in range(len(cut.names)):
        own = every[member == part]
        if len(own) >= FEWEST:
            shares[part] = _better(own, lag)
    if len(shares) < 3:
        return
    odd = max(shares, key=lambda p: float(shares[p].mean()))
    rest = np.concatenate([s for p, s in shares.items() if p != odd])
    chance = _chance(shares[odd], rest, 1, comparisons)
    if chance is not None:
        yield Lagged(lag, float(shares[odd].mean()), float(rest.mean()), chance, cut=cut, part=odd)


def _chance(inside: Array, outside: Array, places: int, comparisons: float) -> float | None:
    """Log of the chance that so many rows fit a neighbour's better, None where that is no plain shift."""
    if len(outside) < FEWEST:
        return None
    within, without = float(inside.mean()), float(outside.mean())
    if without > OUTSIDE or within < 1.0 - without - REVERSED:
        return None
    near = np.clip(float(np.corrcoef(inside[1:], inside[:-1])[0, 1]) if inside.std() > 0 else 0.0, 0.0, 0.9)
    share = min((1.0 - near) / (1.0 + near), independent_share(outside))
    gained = int(share * inside.sum())
    lost = int(share * (~inside).sum())
    chance = math.log(max(paired_tail(gained, lost), 1e-300))
    chance += math.log(places * (places + 1) / 2.0) + math.log(max(1.0, comparisons))
    return chance if chance < math.log(LEVEL) else None
