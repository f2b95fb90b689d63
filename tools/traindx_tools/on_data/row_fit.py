"""How well a value fits the rest of its row: what is left of it after a linear prediction by all other fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import codes, keys
from traindx_tools.on_data.shard import Shard

MOST_WIDTH = 160
"""Features of all fields together."""
MOST_FIELD = 64
"""Features of one field; a wider one is looked at by itself."""
MOST_KINDS = 20
FEWEST_KINDS = 4
"""Fields of few values that tell of the only number of a row."""
ROWS_PER_FEATURE = 12
TOLD = 0.3
"""Share of a feature's variance that the others must tell."""
ALONE = 0.6
"""The same of the only number of a row: nothing else shows that its rows are in no order."""
MOST_ROWS = 8192


def fits(
    group: Sequence[Shard], fields: Sequence[str], labels: Sequence[str], most: int = MOST_ROWS
) -> Iterator[tuple[str, str, tuple[Array, ...], tuple[Array, ...]]]:
    """Field, what it is, by shard what the others say of a value beside it (rows, 2), and the rows looked at.

    `most`: rows of a shard that are looked at. Ranks as normal scores, so that no tail leads; from the inverse of their
    correlations, which holds the regression of each feature on all others.
    """
    rows = [np.arange(0, s.rows, max(1, -(-s.rows // most))) for s in group]
    blocks = [(n, k, [c[:, k] for c in made]) for n in fields if (made := _features(group, n, rows)) is not None
              and n not in labels for k in range(made[0].shape[1])]
    total = sum(map(len, rows))
    if not 1 <= len(blocks) <= MOST_WIDTH or total < 200:
        return
    hot = [h for n in labels if (h := _hot(group, n, rows)) is not None]
    if len(blocks) + len(hot) < 2 or (len(blocks) == 1 and len(hot) < FEWEST_KINDS):
        return  # a number beside one or two labels: what they say of it is D142's and D109's
    x = np.empty((len(blocks) + sum(map(len, hot)), total))  # a row for each feature: all below goes along features
    if total < ROWS_PER_FEATURE * len(x):
        return
    for at, (_, _, parts) in enumerate(blocks):
        x[at] = _scores(np.concatenate(parts))
    if hot:
        x[len(blocks):] = np.concatenate(hot)
        x[len(blocks):] -= x[len(blocks):].mean(axis=1, keepdims=True)  # scores have none
    covariance = np.cov(x) + 0.01 * np.eye(len(x))
    inverse = np.linalg.inv(covariance)
    left = (inverse / np.diag(inverse)[:, None])[: len(blocks)] @ x
    ends = np.cumsum([len(r) for r in rows])[:-1]
    for at, (name, k, parts) in enumerate(blocks):
        told = 1.0 - float(np.median(np.abs(left[at]))) ** 2 / max(1e-9, float(np.median(np.abs(x[at]))) ** 2)
        if told >= (TOLD if len(blocks) > 1 else ALONE):
            which = f"feature {k}" if len(parts[0].shape) and _width(group[0], name) > 1 else "the value"
            pairs = np.stack([x[at] - left[at], x[at]], axis=1)
            yield name, f"how far {which} is from what the other fields of its row say", tuple(
                np.split(pairs, ends)), tuple(rows)


def _width(shard: Shard, name: str) -> int:
    return int(np.prod(shard.columns[name].row_shape))


def _features(group: Sequence[Shard], name: str, rows: Sequence[Array]) -> list[Array] | None:
    """float64 shape (rows, features) of each shard; None of a field that has none, or too many."""
    out = []
    for shard, at in zip(group, rows, strict=True):
        column = shard.columns.get(name)
        if column is None or column.kind != "number" or column.rows != shard.rows or _width(shard, name) > MOST_FIELD:
            return None
        if column.values.dtype.kind not in "iuf" or len(column.row_shape) > 1:
            return None
        out.append(np.asarray(column.values[at], np.float64).reshape(len(at), -1))
    return out if len({o.shape[1] for o in out}) == 1 else None


def _scores(values: Array) -> Array:
    """Normal scores of the ranks; equal values have one, what is missing is the centre."""
    finite = np.isfinite(values)
    _, at, counts = np.unique(np.where(finite, values, np.inf), return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - 0.5 * counts) / max(1, len(values))
    share = middle[at.reshape(-1)]
    return np.where(finite, np.log(share / (1.0 - share)) / 1.702, 0.0)  # the logistic is the normal within 0.01


def _hot(group: Sequence[Shard], name: str, rows: Sequence[Array]) -> Array | None:
    if any(name not in s.columns or s.columns[name].rows != s.rows for s in group):
        return None
    kinds = np.unique(np.concatenate([keys(s.columns[name]) for s in group]))
    if not 2 <= len(kinds) <= MOST_KINDS:
        return None
    y = np.concatenate([codes(s.columns[name], kinds)[r] for s, r in zip(group, rows, strict=True)])
    return np.asarray(y == np.arange(1, len(kinds))[:, None])
