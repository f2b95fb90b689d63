"""Rows of a table of tokens that are one to the bit, or nothing but the mean of all others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor

MOST_BYTES = 2**31
NEAR = 0.02
"""Of the usual distance of a row from the mean: a row that training saw, or an initialiser drew, is not that near."""


@dataclass(frozen=True)
class Untrained:
    """`rows`: by number. `how`: in words."""

    rows: tuple[int, ...]
    how: str


def untrained_rows(stats: Stats, asked: Iterable[int]) -> list[Untrained]:
    """Of the rows that are asked for, those that are equal to each other, and those that are the mean of the rest."""
    numbers = [n for n in sorted(asked) if n < stats.tensor.rows]
    groups: dict[bytes, list[int]] = {}
    for number in numbers:
        groups.setdefault(stats.tensor.row(number), []).append(number)
    near = _at_mean(stats.tensor, numbers)
    found = []
    for same in groups.values():
        if len(same) > 1:
            more = ", the mean of the other rows" if set(same) <= near else ""
            more = ", zero" if stats.row_squares[same[0]] == 0 else more
            found.append(Untrained(tuple(same), f"equal to each other to the bit{more}"))
    told = {n for one in found for n in one.rows}
    if left := tuple(n for n in numbers if n in near and n not in told):
        found.append(Untrained(left, "the mean of the other rows"))
    return found


def _at_mean(tensor: Tensor, numbers: list[int]) -> set[int]:
    """Rows that lie at the mean of all that are not asked for."""
    if tensor.nbytes > MOST_BYTES or tensor.rows < 4 * len(numbers) or not numbers:
        return set()
    width = tensor.size // tensor.rows
    total, squares, count = np.zeros(width), 0.0, 0
    own = np.zeros((len(numbers), width))
    for at in range(0, tensor.rows, step := max(1, 2**20 // width)):
        block = _rows(tensor, at, min(step, tensor.rows - at))
        inside = [(i, n - at) for i, n in enumerate(numbers) if at <= n < at + len(block)]
        for i, n in inside:
            own[i] = block[n]
        rest = np.delete(block, [n for _, n in inside], axis=0)
        total += rest.sum(axis=0)
        squares += float((rest**2).sum())
        count += len(rest)
    mean = total / count
    usual = np.sqrt(max(0.0, squares / count - float((mean**2).sum())))
    digits = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(tensor.dtype, 0.0)
    far = np.sqrt(((own - mean) ** 2).sum(axis=1))
    return {n for n, d in zip(numbers, far, strict=True) if d < max(NEAR * usual, digits * np.sqrt((mean**2).sum()))}


def _rows(tensor: Tensor, at: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    from traindx_tools.on_weights.tensor import CHUNK, STORED, as_numbers

    width = tensor.nbytes // tensor.rows
    data = b"".join(p.tobytes() for p in tensor.source.parts(at * width, count * width, CHUNK))
    stored = np.frombuffer(data, STORED[tensor.dtype])
    return np.asarray(as_numbers(stored, tensor.dtype).astype(np.float64).reshape(count, -1))
