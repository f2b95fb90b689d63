"""A bounded part of an array on the host, by which its values are known again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_jax import internals

MOST_ELEMENTS = 2**12
"""Elements of one array that are read: 16 KiB in single precision."""
FEWEST_DISTINCT = 4
"""Different values from which equal bytes are no chance: zeros, ones and the like are everywhere."""

Type = tuple[tuple[int, ...], str]


@dataclass(frozen=True, eq=False)
class Sample:
    """The first corner of an array. `telling`: its values are not those of any other array."""

    type: Type
    values: NDArray[Any]
    digest: bytes
    telling: bool

    def without_values(self) -> Sample:
        """By which it is known again and takes no memory: distances are asked of the trained state alone."""
        return replace(self, values=np.empty(0, np.float32))

    def distance(self, other: Sample) -> float:
        """How far `other` is from this one, as a share of this one's norm. Infinite from zero, or without numbers."""
        mine, theirs = (s.values.astype(np.float32) for s in (self, other))
        if mine.shape != theirs.shape or np.array_equal(mine, theirs):
            return 0.0
        norm = float(np.linalg.norm(mine))
        far = float(np.linalg.norm(theirs - mine))
        return far / norm if norm and np.isfinite(far) else float("inf")


def type_of(leaf: Any) -> Type | None:
    """Shape and dtype of an array of floats of at least one axis; None for all else."""
    dtype = getattr(leaf, "dtype", None)
    if not isinstance(dtype, np.dtype) or not (dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))):
        return None
    shape = tuple(leaf.shape)
    return (shape, dtype.name) if shape and 0 not in shape and not internals.is_tracer(leaf) else None


def sample_of(leaf: Any, *, wait: bool = True) -> Sample | None:
    """A sample, None where there is none: no floats, not on this host, given away, or not there yet.

    `wait`: for an array that is still computed; otherwise it is None.
    """
    told = type_of(leaf)
    if told is None or not getattr(leaf, "is_fully_addressable", True) or getattr(leaf, "is_deleted", bool)():
        return None
    if not wait and not getattr(leaf, "is_ready", lambda: True)():
        return None
    values = np.array(np.asarray(_corner(leaf)))
    distinct = np.unique(values.astype(np.float32).reshape(-1)[:256]).size
    return Sample(told, values, hashlib.blake2b(values.tobytes(), digest_size=16).digest(),
                  distinct >= FEWEST_DISTINCT)


def _corner(leaf: Any) -> Any:
    """The leading part of it, which alone is copied from a device."""
    if leaf.size <= MOST_ELEMENTS:
        return leaf
    kept, budget = [], MOST_ELEMENTS
    rest = int(leaf.size)
    for length in leaf.shape:
        rest //= int(length)
        taken = min(int(length), max(1, budget // rest))
        kept.append(slice(0, taken))
        budget = max(1, budget // taken)
    return (np.asarray(leaf) if _on_host(leaf) else leaf)[tuple(kept)]


def _on_host(leaf: Any) -> bool:
    """Whether its values lie in this process's memory as they are, so that a view of them costs nothing."""
    if isinstance(leaf, np.ndarray):
        return True
    devices = leaf.devices() if hasattr(leaf, "devices") else ()
    return len(devices) == 1 and all(d.platform == "cpu" for d in devices)
