"""Files of one model in a run's folder: the same tensors at several steps, averaged, or the best of them.

Each tensor is compared with itself in every other file, to the bit and by how far it moved: what is the same where all
else differs, and what is another sum of the others than the rest is, is told by no single file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.counters import counters_of, named_step
from traindx_tools.on_weights.tensor import CHUNK, Tensor

MOST_BYTES = 2**28
"""Of all files of a set together."""
MOST_FILES = 8
SAMPLE = 2**15
"""Values of a tensor that are laid beside each other."""
SMALLEST = 16


@dataclass(frozen=True, eq=False)
class Saved:
    """One file of a set. `step`: what it counts, or what its name says; None where neither does."""

    path: str
    step: int | None
    tensors: Mapping[str, Tensor]
    checkpoint: Checkpoint
    _digests: dict[str, bytes] = field(default_factory=dict)
    _samples: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def digest(self, name: str) -> bytes:
        """A hash of the bytes of a tensor. Raises UnreadableInput."""
        if name not in self._digests:
            made = hashlib.blake2b(digest_size=16)
            tensor = self.tensors[name]
            for part in tensor.source.parts(0, tensor.nbytes, CHUNK):
                made.update(part.tobytes())
            self._digests[name] = made.digest()
        return self._digests[name]

    def sample(self, name: str) -> NDArray[np.float64]:
        """Values of a tensor at places that are the same in all files. Raises UnreadableInput."""
        if name not in self._samples:
            flat = self.tensors[name].load().reshape(-1)
            self._samples[name] = flat[:: max(1, flat.size // SAMPLE)].astype(np.float64)
        return self._samples[name]

    @cached_property
    def constants(self) -> frozenset[str]:
        """Tensors of one value throughout."""
        return frozenset(n for n in self.tensors if np.ptp(self.sample(n)) == 0)


def file_sets(read: Iterable[Checkpoint]) -> list[tuple[Saved, ...]]:
    """The files whose weights have the same names and shapes, by their steps; those without one last."""
    held: dict[frozenset[tuple[str, tuple[int, ...]]], list[Saved]] = {}
    for one in read:
        tensors = {n: t for n, t in one.weights.tensors.items() if t.floating and t.size >= SMALLEST}
        if len(tensors) > 1:
            held.setdefault(frozenset((n, t.shape) for n, t in tensors.items()), []).append(
                Saved(one.path, _step(one), tensors, one))
    return [tuple(sorted(files, key=lambda f: (f.step is None, f.step or 0)))
            for files in held.values() if 2 < len(files) <= MOST_FILES
            and sum(t.nbytes for f in files for t in f.tensors.values()) <= MOST_BYTES]


def _step(checkpoint: Checkpoint) -> int | None:
    """The count of the run in the file, else the step that its name says."""
    own = [n for key, n in counters_of(checkpoint).items() if key.count(".") == 0]
    return own[0] if len(set(own)) == 1 else named_step(checkpoint.path)
