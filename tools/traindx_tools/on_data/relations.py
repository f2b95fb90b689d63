"""Relations between the numbers of a row, by part: which is larger, whether both rise together, how boxes are written.

A part is contrary only to parts that agree, and only where a plain operation (two fields exchanged, one turned, boxes
written otherwise) makes it like them: a source of another level, or another relation, fits none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.repairs import contrary
from traindx_tools.on_data.roles import is_identifier, is_row_id
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, distance, normal_tail, share_tail

MOST_FEATURES = 24
MOST_ROWS, FEWEST_ROWS = 30_000, 64
"""Rows of all files together that are looked at, evenly spaced, and of each file at least."""
ROWS = 24
TELLS = 0.3
"""Rank correlation that the others have at least."""
USUAL = 0.4
"""And the typical one of them."""
ORDERED = 0.95
"""Share of the rows in which one of two is the larger one, in all other parts."""
CONTRARY = 0.8
"""Share of the rows of the contrary part in which the other one is."""
WITHOUT_EXCEPTION, FEW = 0.99, 4
"""Share of the rows in which an order is kept without exception; and one of how many parts may be contrary."""
TOGETHER = 0.4
"""Correlation of two numbers that belong together within a part, where a season varies little."""
ALIKE = 0.15
"""Distance of distributions after the operation, beyond what sampling makes."""
LEFT = 0.25
"""Share of the squared distance to the others' correlations that an operation may leave."""


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers of the rows that were looked at, of all files one behind the other."""

    names: tuple[str, ...]
    fields: tuple[str, ...]
    values: Array
    """float64 shape (rows, features); NaN where nothing stands."""
    steady: Array
    """bool shape (features,): times and the like, which only order is asked of."""
    shard: Array
    """int64 shape (rows,)."""
    row: Array
    """int64 shape (rows,): which row of its file."""


@dataclass(frozen=True)
class Contrary:
    """A part whose relation is contrary, and the operations each of which undoes it."""

    part: int
    fields: tuple[str, ...]
    seen: str
    """What is contrary, with the values."""
    operations: tuple[str, ...]
    sure: bool
    """Whether more than one relation says so."""
    kind: str


def features_of(group: Sequence[Shard]) -> Features | None:
    """The numbers that all files have: single ones and those of short rows; None where there are no two."""
    most = max(FEWEST_ROWS, MOST_ROWS // len(group))
    rows = [np.unique(np.linspace(0, s.rows - 1, min(s.rows, most)).astype(np.int64)) for s in group]
    names: list[str] = []
    fields: list[str] = []
    values: list[Array] = []
    steady: list[bool] = []
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        width = _width(columns, group)
        if width is None or len(names) + width > MOST_FEATURES:
            continue
        made = [np.asarray(c.values[r], np.float64).reshape(len(r), width)
                for c, r in zip(columns, rows, strict=True) if c is not None]
        names += [name] if width == 1 else [f"{name}[{k}]" for k in range(width)]
        fields += [name] * width
        steady += [any(is_identifier(c) for c in columns if c is not None)] * width
        values.append(np.concatenate(made))
    if len(names) < 2:
        return None
    at = np.concatenate([np.full(len(r), i, np.int64) for i, r in enumerate(rows)])
    return Features(tuple(names), tuple(fields), np.concatenate(values, axis=1), np.array(steady), at,
                    np.concatenate(rows))


def listed_features(group: Sequence[Shard]) -> list[Features]:
    """The numbers of each entry of lists of boxes, with the row that the list stands in."""
    out = []
    for name in group[0].columns:
        columns = [c for s in group if (c := s.columns.get(name)) is not None and c.inner > 1 and c.offsets is not None]
        if len(columns) < len(group) or len({c.inner for c in columns}) > 1:
            continue
        inner = columns[0].inner
        values = [np.asarray(c.values, np.float64).reshape(-1, inner) for c in columns]
        rows = [np.repeat(np.arange(c.rows), np.diff(c.offsets) // inner) for c in columns if c.offsets is not None]
        step = max(1, -(-sum(map(len, rows)) // MOST_ROWS))
        out.append(Features(
            tuple(f"{name}[{k}]" for k in range(inner)), (name,) * inner, np.concatenate([v[::step] for v in values]),
            np.zeros(inner, bool), np.concatenate([np.full(len(r[::step]), i) for i, r in enumerate(rows)]),
            np.concatenate([r[::step] for r in rows])))
    return [x for x in out if len(x.row)]


def _width(columns: Sequence[Column | None], group: Sequence[Shard]) -> int | None:
    """Numbers of a row, where all files have them alike; None of what is no quantity."""
    widths = set()
    for column, shard in zip(columns, group, strict=True):
        if column is None or column.kind != "number" or column.rows != shard.rows or column.values.dtype.kind not in (
            "iuf"
        ) or is_row_id(column):
            return None
        widths.add(int(np.prod(column.row_shape)) if len(column.row_shape) < 2 else 0)
    return widths.pop() if len(widths) == 1 and 1 <= max(widths) <= 8 else None


def contrary_orders(x: Features, member: Array, parts: int, comparisons: float) -> list[Contrary]:
    """Parts in which one of two numbers is the larger one, and in all others the smaller one."""
    out = []
    for i in range(len(x.names)):
        for j in range(i + 1, len(x.names)):
            apart = x.values[:, j] - x.values[:, i]
            told = np.isfinite(apart) & (apart != 0) & (member >= 0)
            counts = np.bincount(member[told], minlength=parts)
            above = np.bincount(member[told & (apart > 0)], minlength=parts)
            every = odd_shares(above, counts, comparisons)
            rest = told & ~np.isin(member, every)
            for odd in every:
                mine, others = (x.values[m][:, [i, j]] for m in (told & (member == odd), rest))
                if not exchanged(mine, others) or not _vary(x.values[member == odd][:, [i, j]], others):
                    continue
                share = above[odd] / counts[odd]
                usual = (above.sum() - above[every].sum()) / (counts.sum() - counts[every].sum())
                out.append(Contrary(
                    odd, (x.names[i], x.names[j]),
                    f"{x.names[i]} is below {x.names[j]} in {share:.0%} of its rows, and in {usual:.0%} of all others",
                    (f"{x.names[i]} and {x.names[j]} exchanged",), True, "exchanged"))
    return out


def _vary(mine: Array, others: Array) -> bool:
    """Whether both are quantities: more than a flag elsewhere, and no constant of the part, as of a device without it.
    """
    return all(len(np.unique(mine[:, k])) > 1 and len(np.unique(others[:, k])) > 2 for k in (0, 1))


def odd_shares(above: Array, counts: Array, comparisons: float) -> list[int]:
    """The part whose share is contrary to that of all others, where it is beyond chance.

    Up to a quarter of the parts, where the order holds without exception in all parts, and nowhere in these: what a
    season or a level turns around passes through shares between.
    """
    if len(counts) < 2 or counts.min() < ROWS:
        return []
    share = above / counts
    for s, hits in ((share, counts - above), (1.0 - share, above)):
        odd = [int(p) for p in np.flatnonzero(s <= 1.0 - WITHOUT_EXCEPTION)]
        several = 2 <= len(odd) <= len(s) // FEW
        if not several:
            odd = [int(np.argmin(s))]
        rest = float(np.delete(s, odd).min())
        if max(s[odd]) <= 1.0 - CONTRARY and rest >= (WITHOUT_EXCEPTION if several else ORDERED):
            p = max(share_tail(int(hits[k]), int(counts[k]), max(0.02, 1.0 - rest)) for k in odd)
            return odd if p * comparisons < LEVEL else []
    return []


def exchanged(mine: Array, others: Array) -> bool:
    """Whether each of two numbers is in a part as the other one is elsewhere, float64 shape (rows, 2) both.

    By their distributions; or, where levels differ, both belong together closely and are as far from each other: less
    closely where the order is turned without exception and the distances are more alike.
    """
    noise = 1.36 * math.sqrt(1.0 / len(mine) + 1.0 / len(others))
    a, b = np.sort(mine, axis=0), np.sort(others, axis=0)
    if max(distance(a[:, 0], b[:, 1]), distance(a[:, 1], b[:, 0])) <= ALIKE + noise:
        return True
    close = [float(np.corrcoef(v[:, 0], v[:, 1])[0, 1]) if v.std(axis=0).min() > 0 else 0.0 for v in (mine, others)]
    gaps = [np.sort(np.abs(v[:, 1] - v[:, 0])) for v in (mine, others)]
    if min(close) >= 0.7 and distance(*gaps) <= 2 * ALIKE + noise:
        return True
    kept = [float((v[:, 1] > v[:, 0]).mean()) for v in (mine, others)]
    turned = max(kept) >= WITHOUT_EXCEPTION and min(kept) <= 1.0 - WITHOUT_EXCEPTION
    return turned and min(close) >= TOGETHER and distance(*gaps) <= ALIKE + noise


def contrary_signs(x: Features, member: Array, parts: int, comparisons: float) -> list[Contrary]:
    """Parts whose rank correlations are those of the others after one number is turned, or two are exchanged."""
    use = np.flatnonzero(~x.steady)
    counts = np.bincount(member[member >= 0], minlength=parts)
    if parts < 3 or len(use) < 2 or counts.min() < ROWS:
        return []
    tables = np.stack([rank_correlations(x.values[member == p][:, use]) for p in range(parts)])
    usual = np.median(tables, axis=0)
    few = max(1, parts // FEW)
    same = (np.sign(tables) == np.sign(usual)) & (np.abs(tables) >= (TELLS if parts > 3 else 0.5))
    mask = (same.sum(axis=0) >= parts - few) & (np.abs(usual) >= USUAL)
    np.fill_diagonal(mask, False)
    out = []
    for p in range(parts):
        sides = (_median_of_others(tables, p), mask)
        hits = mask & (np.sign(tables[p]) == -np.sign(usual)) & (np.abs(tables[p]) >= 0.5 * np.abs(usual))
        if hits.any() and _beyond_chance(tables[p], usual, hits, int(counts[p]), comparisons):
            found = _undone(x, use, tables[p], sides, hits, (member == p, (member >= 0) & (member != p)))
            out += [Contrary(p, *found)] if found is not None else []
    return out if len(out) <= few else []


def _median_of_others(tables: Array, p: int) -> Array:
    return np.asarray(np.median(np.delete(tables, p, axis=0), axis=0))


def rank_correlations(values: Array) -> Array:
    """float64 shape (features, features), of the ranks; 0 where one never varies."""
    ranks = np.empty_like(values)
    for k in range(values.shape[1]):
        column = values[:, k]
        filled = np.where(np.isfinite(column), column, np.nanmedian(column) if np.isfinite(column).any() else 0.0)
        _, at, counts = np.unique(filled, return_inverse=True, return_counts=True)
        ranks[:, k] = (np.cumsum(counts) - 0.5 * counts)[at.reshape(-1)]
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    return np.asarray(ranks.T @ ranks / np.maximum(1e-12, np.outer(size, size)))


def _beyond_chance(mine: Array, usual: Array, hits: Array, rows: int, comparisons: float) -> bool:
    """Fisher's transform of the surest contrary correlation against none at all."""
    best = float(np.abs(mine[hits]).max())
    return normal_tail(math.atanh(min(0.999999, best)) * math.sqrt(max(1, rows - 3))) * comparisons < LEVEL


def _undone(
    x: Features, use: Array, mine: Array, sides: tuple[Array, Array], hits: Array, rows: tuple[Array, Array]
) -> tuple[tuple[str, ...], str, tuple[str, ...], bool, str] | None:
    """The operations that make a part's correlations those of the others; all that fit as well as the best."""
    usual, mask = sides
    before = float(((mine - usual)[mask] ** 2).mean())
    touched = np.flatnonzero(hits.any(axis=0))
    ways: list[tuple[float, tuple[int, ...]]] = []
    for i in touched.tolist():
        turned = mine.copy()
        turned[i, :] *= -1
        turned[:, i] *= -1
        ways.append((float(((turned - usual)[mask] ** 2).mean()), (i,)))
        for j in (j for j in range(len(use)) if j != i):
            order = np.arange(len(use))
            order[[i, j]] = order[[j, i]]
            ways.append((float(((mine[np.ix_(order, order)] - usual)[mask] ** 2).mean()), (i, j)))
    least = min(w[0] for w in ways)
    noise = 2.0 / max(ROWS, int(rows[0].sum()))
    if least > LEFT * before + noise:
        return None
    fitting = [w[1] for w in ways if w[0] <= least + max(noise, 0.05 * before)]
    fitting = list(dict.fromkeys(tuple(sorted(f)) for f in fitting))
    fitting = _fit_their_values(x, use, fitting, rows) or fitting
    told = tuple(_operation(x, use, f, rows) for f in fitting[:3])
    one, other = np.unravel_index(int(np.argmax(np.where(hits, np.abs(mine), -1.0))), hits.shape)
    names = tuple(dict.fromkeys(x.names[use[k]] for f in fitting for k in f))
    seen = (f"{x.names[use[one]]} and {x.names[use[other]]} have a rank correlation of {mine[one, other]:.2f} there "
            f"and of {usual[one, other]:.2f} elsewhere")
    kind = "turned" if len(fitting[0]) == 1 else "exchanged"
    return names, seen, told, int(hits.sum()) > 2 or len(fitting) == 1, kind


def _fit_their_values(
    x: Features, use: Array, fitting: Sequence[tuple[int, ...]], rows: tuple[Array, Array]
) -> list[tuple[int, ...]]:
    """Of the operations those whose values are distributed as the others' afterwards, and were not before."""
    out = []
    for f in fitting:
        mine, others = (_columns(x, use, f, r) for r in rows)
        if len(f) == 2:
            apart = max(distance(mine[0], others[0]), distance(mine[1], others[1]))
            after = max(distance(mine[0], others[1]), distance(mine[1], others[0]))
        else:
            apart = distance(mine[0], others[0])
            after = min(distance(np.sort(c - mine[0]), others[0])
                        for c in (0.0, others[0][0] + others[0][-1], contrary(mine[0], others[0])[0]))
        if after < 0.7 * apart and apart > ALIKE:
            out.append(f)
    return out


def _columns(x: Features, use: Array, which: tuple[int, ...], rows: Array) -> list[Array]:
    found = [x.values[rows, use[k]] for k in which]
    return [np.sort(v[np.isfinite(v)]) for v in found]


def _operation(x: Features, use: Array, which: tuple[int, ...], rows: tuple[Array, Array]) -> str:
    names = [x.names[use[k]] for k in which]
    if len(which) == 2:
        return f"{names[0]} and {names[1]} exchanged"
    mine, others = (_columns(x, use, which, r)[0] for r in rows)
    turned, called = contrary(mine, others)
    sign = distance(np.sort(-mine), others)
    if others[0] >= 0 and mine[0] >= 0 and distance(np.sort(turned - mine), others) <= sign:
        return f"{names[0]} turned around ({turned:.4g} - value{f': {called}' if called else ''})"
    return f"{names[0]} with the opposite sign"
