"""In which order the rows of a batch stand, field by field, beside the samples that they were made of.

A field whose values are all different tells the order (sequences that were sorted by length, say). Of another field,
such as labels of which many are equal, it is only asked whether it stands in that order too, or holds the same values
in another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

MOST_ROWS, MOST_VALUES, MOST_OF_ONE = 128, 2**16, 2**13
"""Rows of a batch, and values of all of them and of one in one field, up to which orders are looked for."""
FEWEST_ROWS, MOVED = 6, 0.5
"""Rows of a batch, and the share of them that have to stand beside another's value: by chance few do."""


@dataclass(frozen=True)
class Apart:
    """Two fields of a batch in different orders. `row`: of the batch; its `key` is that of sample `sample`."""

    key: str
    other: str
    rows: int
    moved: int
    row: int
    sample: int
    has: str
    should: str
    """The other field's value in that row, and the sample's own."""


def orders_apart(rows: Sequence[Any], tensors: Sequence[torch.Tensor]) -> Apart | None:
    """None where all fields stand in one order, or the batch says in which. `rows`: the samples as they were read."""
    fields = fields_of_rows(rows)
    parts = [t for t in tensors if t.device.type == "cpu" and t.ndim and len(t) == len(rows) and not t.is_complex()]
    keys = {name: found for name, values in fields.items() if (found := list(_orders(values, parts)))}
    for key, orders in keys.items():
        if any(_tells(part, order) for part in parts for order in orders):
            return None
        for other, values in fields.items():
            apart = _apart(key, orders[0], other, values, parts) if other != key and _single(values) else None
            if apart is not None and len(orders) == 1 and not any(
                    _stands(values, part, order) for found in keys.values() for order in found for part in parts
                    if found is not keys.get(other)):
                return apart
    return None


def fields_of_rows(rows: Sequence[Any]) -> dict[str, list[np.ndarray]]:
    """Numbers of each field of all rows, flat, by its name or its place; {} where rows have no fields."""
    if not FEWEST_ROWS <= len(rows) <= MOST_ROWS:
        return {}
    if all(isinstance(r, dict) for r in rows):
        named = [dict(r) for r in rows]
    elif all(isinstance(r, (tuple, list)) for r in rows) and len({len(r) for r in rows}) == 1:
        named = [{str(i): v for i, v in enumerate(r)} for r in rows]
    else:
        return {}
    found: dict[str, list[np.ndarray]] = {}
    for name in named[0]:
        values = [_numbers(r[name]) for r in named if name in r]
        kept = [v for v in values if v is not None]
        if len(kept) == len(rows) and sum(v.size for v in kept) <= MOST_VALUES:
            found[str(name)] = kept
    return found


def _numbers(value: Any) -> np.ndarray | None:
    import torch

    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu" or value.is_complex() or value.numel() > MOST_OF_ONE:
            return None
        return value.detach().reshape(-1).double().numpy()
    if isinstance(value, (bool, int, float, np.generic)) or (
            isinstance(value, (np.ndarray, list)) and np.size(value) <= MOST_OF_ONE):
        try:
            return np.asarray(value, np.float64).reshape(-1)
        except (TypeError, ValueError):
            return None
    return None


def _orders(values: list[np.ndarray], parts: Sequence[torch.Tensor]) -> Iterator[tuple[int, ...]]:
    """By row of a part: the sample whose value it begins with, where that is one sample alone for every row."""
    if len({v.tobytes() for v in values}) < len(values) or min(v.size for v in values) == 0:
        return
    for part in parts:
        flat = part.detach().reshape(len(part), -1).double().numpy()
        if flat.shape[1] < max(v.size for v in values):
            continue
        order = []
        for row in flat:
            fitting = [i for i, v in enumerate(values) if _near(row[:v.size], v) and len(set(row[v.size:])) <= 1]
            if len(fitting) != 1:
                break
            order.append(fitting[0])
        if sorted(order) == list(range(len(values))):
            yield tuple(order)


def _single(values: list[np.ndarray]) -> bool:
    return all(v.size == 1 for v in values)


def _apart(key: str, order: tuple[int, ...], other: str, values: list[np.ndarray], parts: Sequence[torch.Tensor]
           ) -> Apart | None:
    own = np.array([float(v[0]) for v in values])
    held = [p.detach().reshape(-1).double().numpy() for p in parts if p.numel() == len(values)]
    fitting = [h for h in held if _near(np.sort(h), np.sort(own))]
    wanted = own[list(order)]
    if len(fitting) != 1 or len(np.unique(own)) < 2:
        return None
    moved = np.flatnonzero(~np.isclose(fitting[0], wanted, rtol=1e-3))
    most = 1.0 - float((np.unique(own, return_counts=True)[1] / len(own)).max())  # those that chance may exchange
    if not len(moved) or len(moved) < MOVED * most * len(own):
        return None
    row = int(moved[0])
    return Apart(key, other, len(own), len(moved), row, order[row], f"{fitting[0][row]:g}", f"{wanted[row]:g}")


def _stands(values: list[np.ndarray], part: torch.Tensor, order: tuple[int, ...]) -> bool:
    """Whether a tensor holds single values in this order."""
    if part.numel() != len(values):
        return False
    return _near(part.detach().reshape(-1).double().numpy(), np.array([values[i][0] for i in order]))


def _tells(part: torch.Tensor, order: tuple[int, ...]) -> bool:
    """Whether a tensor of the batch is the order that its rows stand in, or the way back."""
    if part.ndim != 1 or part.is_floating_point() or order == tuple(range(len(order))):
        return False
    given = part.tolist()
    return given in (list(order), np.argsort(order).tolist())


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-3, atol=1e-6, equal_nan=True))
