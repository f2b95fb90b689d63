"""Pairs that a model is given: an index of two columns or two rows, or two inputs of one shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.on_torch.measures.lookups import FEWEST_ROWS, MOST_ROWS, WHOLE, joined, pair_columns, plain, thinned
from traindx_tools.on_torch.measures.row_values import ANSWERS, SIDE
from traindx_tools.rows.pairs import Ints

MOST_SAMPLES, WIDTH = 2**12, 64
"""Rows of one call that are known by their values, and values of each that are read."""
MOST_INDICES = 3


@dataclass(frozen=True, eq=False)
class GivenPairs:
    """Two columns of ids, or the values of two rows beside each other; a copy on its own device."""

    name: str
    ids: bool
    values: torch.Tensor


def given_pairs(named: Mapping[str, torch.Tensor], turn: int) -> Iterator[GivenPairs]:
    """The pairs among the arguments of a call."""
    data = {n: t for n, t in named.items() if t.dtype != torch.bool and not t.is_complex() and plain(t)
            and n not in ANSWERS and not any(word in n.lower() for word in SIDE)}
    indices = [(n, c) for n, t in data.items() if (c := pair_columns(t)) is not None]
    for name, columns in indices[:MOST_INDICES]:
        yield GivenPairs(name, True, thinned(columns, turn))
    if not indices:
        yield from _of_two(data, turn)


def _of_two(data: Mapping[str, torch.Tensor], turn: int) -> Iterator[GivenPairs]:
    main = max(data.values(), key=lambda t: t.numel(), default=None)
    if main is None or len(main) < FEWEST_ROWS:
        return
    alike = {n: t for n, t in data.items() if t.shape == main.shape and t.dtype == main.dtype}
    if len(alike) != 2:
        return
    (left, a), (right, b) = alike.items()
    if a is b or a.device != b.device:
        return
    name = f"{left}, {right}"
    if a.ndim == 1 and a.dtype in WHOLE:
        if len(a) <= 8 * MOST_ROWS:
            yield GivenPairs(name, True, joined(a, b, turn))
    elif a.ndim >= 2:
        yield GivenPairs(name, False, torch.cat([row_values(a), row_values(b)], 1))


def row_values(t: torch.Tensor) -> torch.Tensor:
    """float32 shape (rows, up to 64): evenly spaced values of each row of an input."""
    flat = t.detach()[:MOST_SAMPLES].reshape(min(len(t), MOST_SAMPLES), -1)
    return flat[:, ::-(-flat.shape[1] // WIDTH)].to(torch.float32)


def row_numbers(values: NDArray[np.float64]) -> Ints:
    """A number of each row by its values."""
    return np.array([hash(row.tobytes()) for row in values.astype(np.float32)], np.int64)


def two_columns(values: NDArray[np.float64], ids: bool) -> tuple[Ints, Ints]:
    """Both sides of pairs that have arrived."""
    if ids:
        whole = values.astype(np.int64)
        return whole[:, 0], whole[:, 1]
    half = values.shape[1] // 2
    return row_numbers(values[:, :half]), row_numbers(values[:, half:])
