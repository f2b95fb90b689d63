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
    if len(array) <= most:
        return array, None
    size = max(1, most // PARTS)
    starts = np.linspace(0, len(array) - size, min(PARTS, most)).astype(np.int64)
    numbers = (starts[:, None] + np.arange(size)).reshape(-1)  # blocks never meet: they lie `size` apart or more
    return array[numbers], numbers
