"""Which rows of which dataset a batch holds: what samplers gave to the DataLoader, in the order of its batches.

With workers a DataLoader draws indices ahead of its batches, and hands batches out in the order of the draws; where it
was told not to (`in_order=False`) nothing is said. Datasets that are parts of another one (`Subset`) are followed to
the whole, so that rows of two splits can be compared.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

Order = Literal["", "stored", "random", "weighted"]

MOST_AHEAD = 4096
"""Draws of one iterator that wait for their batches; one that has more is no longer followed."""
DEEPEST = 8
"""Parts of parts of a dataset that are followed."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows of one batch: int64 shape (rows,), as numbers in the dataset of the loader and in the whole one.

    `dataset`, `whole`: the objects themselves, to be looked at and not to be kept. `epoch`: the iterator, by number.
    """

    dataset: Any
    whole: Any
    index: NDArray[np.int64]
    base: NDArray[np.int64]
    epoch: int
    order: Order = ""
    """How the sampler orders rows; "" where it does it in a way of its own."""
    single: bool = False
    """The loader batches nothing: it asks its dataset for one item, which may hold many rows."""

    @property
    def by_chance(self) -> bool:
        """Whether each row may come next to any other."""
        return self.order in ("random", "weighted")


class Drawn:
    """The draws that wait for their batches, by iterator."""

    def __init__(self) -> None:
        self._waiting: weakref.WeakKeyDictionary[Any, deque[Any]] = weakref.WeakKeyDictionary()
        self._epochs: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = 0

    def next_index(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The patch of `_next_index`: keeps what it returns."""

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            index = original(iterator)
            waiting = self._waiting.setdefault(iterator, deque())
            if len(waiting) < MOST_AHEAD:
                waiting.append(index)
            return index

        return following

    def reset(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The patch of `_reset`: persistent workers begin another epoch with the same iterator."""

        @functools.wraps(original)
        def again(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            self._waiting.pop(iterator, None)
            self._epochs.pop(iterator, None)
            return original(iterator, *args, **kwargs)

        return again

    def of(self, iterator: Any) -> Draw | None:
        """The draw of the batch that this iterator has just handed out."""
        waiting = self._waiting.get(iterator)
        if not waiting or len(waiting) >= MOST_AHEAD or not getattr(iterator, "_in_order", True):
            return None
        if getattr(iterator, "_num_workers", 0):
            index = waiting.popleft()
        else:  # a batch that could not be made leaves its draw behind
            index = waiting.pop()
            waiting.clear()
        single = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
        numbers = np.array([index], np.int64) if single else _numbers(index)
        if numbers is None:
            return None
        if iterator not in self._epochs:
            self._count += 1
            self._epochs[iterator] = self._count
        whole, base = whole_of(iterator._dataset, numbers)
        return Draw(iterator._dataset, whole, numbers, base, self._epochs[iterator],
                    order_of(getattr(iterator, "_index_sampler", None)), single)


def order_of(batches: Any) -> Order:
    """How the samplers of torch below a batch sampler of torch order rows. Those of others may group them."""
    for _ in range(DEEPEST):
        inner = getattr(batches, "batch_sampler", None)
        if not isinstance(inner, BatchSampler):
            break
        batches = inner
    rows: Any = batches.sampler if type(batches) is BatchSampler else batches
    if type(rows) in (RandomSampler, SubsetRandomSampler):
        return "random"
    if type(rows) is WeightedRandomSampler:
        return "weighted"
    if type(rows) is DistributedSampler:
        return "random" if rows.shuffle else "stored"
    return "stored" if type(rows) is SequentialSampler else ""


def _numbers(index: Any) -> NDArray[np.int64] | None:
    """The indices of a batch; None for those that are no list of whole numbers (an iterable dataset, keys)."""
    if not isinstance(index, (list, tuple)) or not index:
        return None
    try:
        values = np.asarray(index)
    except (ValueError, TypeError):
        return None
    return values.astype(np.int64) if values.dtype.kind in "iu" and values.ndim == 1 else None


def whole_of(dataset: Any, index: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """The dataset that a part was taken from and the rows there; itself where it is no part."""
    for _ in range(DEEPEST):
        part = getattr(dataset, "indices", None) if type(dataset).__name__ == "Subset" else None
        if part is None:
            break
        index = taken(part, index)
        dataset = dataset.dataset
    return dataset, index


def taken(part: Sequence[int], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The entries of a list, range, array or tensor of whole numbers at these places."""
    return np.array([int(part[int(i)]) for i in index], np.int64)
