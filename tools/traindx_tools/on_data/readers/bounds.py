"""What is read at most of one file, and how a part of it is chosen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from traindx_tools.on_data.column import Array

PARTS = 64
"""Blocks of neighbouring rows that a sample is made of: neighbours show order and duplicates, blocks the whole file."""


@dataclass(frozen=True)
class Bounds:
    """Limits of a reading. `ends`: the value of `time.monotonic()` at which nothing new is begun."""

    values: int = 2**27
    """Values of one array that are looked at: 512 MiB of float32."""
    rows: int = 200_000
    """Records of a text format."""
    unpacked: int = 2**30
    """Bytes that one packed member may become."""
    text: int = 2**28
    """Bytes of a text format."""
    ends: float = field(default=float("inf"))
    share: float = 0.0
    """Of a file of a set that is too large: its part of the set's sample. 0: it is read as far as the other limits."""
    by_set: bool = False
    """Whether arrays are handed on with all their rows, mapped: which of them are looked at is chosen by set."""

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() > self.ends

    def within_time(self, a_second: int) -> Bounds:
        """The same with no more values than the time that is left allows at `a_second`."""
        left = self.ends - time.monotonic()
        return self if left * a_second >= self.values else replace(self, values=max(a_second, int(left * a_second)))


def sampled(array: Array, bounds: Bounds) -> tuple[Array, Array | None]:
    """The rows that are looked at and their numbers (None where it is all of them): `PARTS` blocks, evenly spaced."""
    width = max(1, int(np.prod(array.shape[1:])))
    most = max(1, bounds.values // width)
    if len(array) <= most or bounds.by_set:
        return array, None
    numbers = in_blocks(len(array), most)
    return array[numbers], numbers


def in_blocks(total: int, most: int) -> Array:
    """int64: about `most` of `total` rows, in `PARTS` blocks of neighbours that are evenly spaced and never meet."""
    size = max(1, most // PARTS)
    starts = np.linspace(0, total - size, min(PARTS, most)).astype(np.int64)
    return (starts[:, None] + np.arange(size)).reshape(-1)
