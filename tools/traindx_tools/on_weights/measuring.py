"""All tensors of a checkpoint measured, each once, on all processors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from time import monotonic

from traindx_tools.on_weights import single_values
from traindx_tools.on_weights.statistics import Stats, measure
from traindx_tools.on_weights.tensor import CHUNK, Tensor

MOST_OF_A_BATCH = 4_096
"""Small tensors that are measured in one go."""
Group = list[Tensor]
"""Names that share their bytes."""


def measure_all(tensors: Iterable[Tensor], seconds: float = math.inf) -> tuple[dict[int, Stats], list[Tensor]]:
    """Statistics by `id` of the tensor, on all processors; what did not fit into `seconds` is returned as left out.

    Names that share their bytes are read once.
    """
    until = monotonic() + seconds
    once: dict[object, Group] = {}
    for tensor in tensors:
        if not tensor.dtype.startswith("complex") and tensor.size:
            shared = (tensor.storage, tensor.shape, tensor.dtype) if tensor.storage else id(tensor)
            once.setdefault(shared, []).append(tensor)
    # the many small ones first: they say most a byte
    groups = sorted(once.values(), key=lambda group: (group[0].nbytes, group[0].dtype))

    def several(batch: list[Group]) -> Sequence[Stats | None]:
        first = [group[0] for group in batch]
        if first[0].size == 1:
            return single_values.measured(first) if monotonic() < until else [None] * len(first)
        return [measure(tensor) if monotonic() < until else None for tensor in first]

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        batches = list(_batches(groups))
        made = list(pool.map(several, batches))
    found: dict[int, Stats] = {}
    left: list[Tensor] = []
    for group, stats in zip(chain.from_iterable(batches), chain.from_iterable(made), strict=True):
        if stats is None:
            left += group
            continue
        for tensor in group:
            found[id(tensor)] = stats if tensor is group[0] else _under(stats, tensor)
    return found, left


def _batches(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """What a thread measures in one go: single values of one type, many small tensors, or a large one."""
    batch: list[Group] = []
    held, kind = 0, ""
    for group in groups:
        own = group[0].dtype if group[0].size == 1 else ""
        if batch and (own != kind or held >= CHUNK or len(batch) >= MOST_OF_A_BATCH):
            yield batch
            batch, held = [], 0
        kind = own
        batch.append(group)
        held += group[0].nbytes
    if batch:
        yield batch


def _under(stats: Stats, tensor: Tensor) -> Stats:
    """The same measurements under another name."""
    return Stats(tensor, stats.low, stats.high, stats.nan, stats.inf, stats.first_bad, stats.row_squares,
                 stats.row_prints, stats.sample, stats.stored_sample)
