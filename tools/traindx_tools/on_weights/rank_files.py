"""What the files of the ranks of one checkpoint hold: tensors by name, to the bit, and flat float32 partitions."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.checkpoint_folders import without_rank
from traindx_tools.on_weights.counters import counters_of
from traindx_tools.on_weights.tensor import CHUNK, STORED, Tensor

SMALLEST = 64
"""Values of a tensor from which on equal ones are no chance."""
MOST_BYTES = 2**20
"""Of each tensor, its first ones, that are compared first."""
MOST_VALUES = 2**27
"""Of all partitions together, as float32 rounded to half precision."""
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, eq=False)
class RankFile:
    """One rank's file."""

    name: str
    tensors: Mapping[str, Tensor]
    """Floating tensors of parts and optimizers by their whole names."""


def rank_files(checkpoint: Checkpoint) -> list[list[RankFile]]:
    """The files of a checkpoint whose names differ in the number of a rank alone, in that number's order."""
    held: dict[str, dict[str, Tensor]] = {}
    for name, tensor in _tensors(checkpoint):
        if tensor.floating and tensor.size >= SMALLEST:
            held.setdefault(os.path.basename(tensor.file), {})[name] = tensor
    groups: dict[str, list[RankFile]] = {}
    for file, tensors in held.items():
        groups.setdefault(without_rank(file), []).append(RankFile(file, tensors))
    return [sorted(g, key=lambda f: [int(n) for n in _DIGITS.findall(f.name)]) for p, g in groups.items()
            if "*" in p and len(g) > 1]


def steps_of_rank(checkpoint: Checkpoint, file: RankFile) -> int | None:
    """The most frequent count of steps among the parameters of the optimizers in a rank's file."""
    counts = [n for key, n in counters_of(checkpoint).items()
              if key.startswith(f"{file.name}:") and key.endswith("step")]
    return counts[0] if len(set(counts)) == 1 else None


def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    for part in checkpoint.parts:
        inner = part.key.partition(":")[2]
        yield from ((f"{inner}.{n}", t) for n, t in part.tensors.items())
    for optimizer in checkpoint.optimizers:
        inner = optimizer.key.partition(":")[2]
        yield from ((f"{inner}.{n}", t) for n, t in _within(optimizer.state, ()))


def _within(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
    if isinstance(node, Tensor):
        yield ".".join(path), node
    elif isinstance(node, Mapping) and len(path) < 4:
        for key, value in node.items():
            yield from _within(value, (*path, str(key)))


def digest_of(tensor: Tensor) -> bytes:
    """A hash of shape, type and the first bytes; b"" of a tensor of one value throughout."""
    length = min(tensor.nbytes, MOST_BYTES)
    data = b"".join(p.tobytes() for p in tensor.source.parts(0, length, CHUNK))
    if data == data[:tensor.itemsize] * (length // tensor.itemsize):
        return b""
    return hashlib.blake2b(repr((tensor.shape, tensor.dtype)).encode() + data, digest_size=16).digest()


def are_equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and type hold the same bytes."""
    return all(bool((a == b).all()) for a, b in zip(one.raw(), other.raw(), strict=True))


def partitions(files: list[RankFile]) -> Iterator[list[Tensor]]:
    """The flat float32 tensors of one name, one of each rank, that are no moments: a master copy in parts."""
    for name, first in files[0].tensors.items():
        own = [f.tensors.get(name) for f in files]
        if len(first.shape) == 1 and first.dtype == "float32" and not _MOMENT.search(name):
            found = [t for t in own if t is not None and len(t.shape) == 1 and t.dtype == "float32"]
            if len(found) == len(files) and sum(t.size for t in found) <= MOST_VALUES:
                yield found


_MOMENT = re.compile(r"(?i)exp_avg|moment|(?:^|[._])(?:mu|nu|m|v)$|step")


def rounded(values: NDArray[np.float32], dtype: str) -> NDArray[np.uint16]:
    """float32 as the bits of the type of half precision that it is rounded to."""
    if dtype == "float16":
        with np.errstate(all="ignore"):
            return values.astype(np.float16).view(np.uint16)
    bits = values.view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.asarray(nearest, np.uint16)


def stored_bits(tensor: Tensor) -> NDArray[np.generic]:
    """The values as stored, flat."""
    parts = [p.copy() for p in tensor.raw()]
    return np.concatenate(parts) if parts else np.empty(0, STORED[tensor.dtype])
