"""Which weights a pruned tensor kept: its mask, or its zeros beside the dense tensor, and how large what it kept is.

Pruning by magnitude keeps the large weights: of a kept and a removed one the kept is the larger, in all pairs where the
tensor was pruned by itself, in most where blocks of four or activations counted too. The share of such pairs (the area
under a ROC curve) is asked of each pruned tensor and compared with those of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.tensor import Tensor, as_numbers, first_rows

MOST_BYTES = 2**28
"""Bytes of a tensor that is looked at."""
MOST_VALUES = 2**20
"""Of a tensor: those of its first rows."""
MOST_TENSORS = 400
LEAST = 0.02
"""Share of the values that must be kept, and that must be removed."""
DENSE = 0.01
"""Share of zeros that the tensor before pruning may have."""
MOST_RANKED = 2**18
_MASK = re.compile(r"(?i)mask")
_STEM = re.compile(r"(?i)[._/]?(?:mask|orig|weight|kernel)\b|_(?:mask|orig)")
Kept = NDArray[np.bool_]
Values = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Pruned:
    """`name` of `file`; the weights before pruning and which of them are kept. `told`: whether it is certain that the
    mask's ones are what is kept (zeros of a pruned file, masks of torch), and not what is removed."""

    name: str
    file: str
    weights: Values
    kept: Kept
    told: bool

    def larger(self, kept: Kept | None = None) -> float:
        """The share of pairs of a kept and a removed weight in which the kept one is larger; lines by their norm."""
        chosen = self.kept if kept is None else kept
        sizes, lines = np.abs(self.weights), _lines(chosen)
        if lines is not None:
            sizes, chosen = (np.moveaxis(v, lines, 0).reshape(v.shape[lines], -1) for v in (sizes, chosen))
            sizes, chosen = np.sqrt((sizes**2).mean(axis=1)), chosen[:, 0]
        return _share_larger(sizes.reshape(-1), chosen.reshape(-1))


def _lines(kept: Kept) -> int | None:
    """The axis whose lines are kept or removed as wholes."""
    for axis in range(kept.ndim):
        moved = np.moveaxis(kept, axis, 0).reshape(kept.shape[axis], -1)
        if moved.shape[1] > 1 and len(moved) > 1 and bool((moved == moved[:, :1]).all()):
            return axis
    return None


def _share_larger(sizes: Values, kept: Kept) -> float:
    step = max(1, sizes.size // MOST_RANKED)
    sizes, kept = sizes[::step], kept[::step]
    many = int(kept.sum())
    if not 0 < many < kept.size:
        return float("nan")
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[inverse]
    return float((ranks[kept].sum() - many * (many + 1) / 2) / (many * (kept.size - many)))


def pruned_of(read: Sequence[Checkpoint]) -> Iterator[list[Pruned]]:
    """The pruned tensors of each file: masks beside their weights, and zeros beside a dense file.

    Raises UnreadableInput.
    """
    floats = {id(c): {n: t for p in c.parts if not p.auxiliary for n, t in p.tensors.items() if t.floating}
              for c in read}
    for one in read:
        masks = {n: t for p in one.parts if not p.auxiliary for n, t in p.tensors.items() if _may_be_mask(n, t)}
        sparse = {n: t for n, t in list(floats[id(one)].items())[:MOST_TENSORS] if _is_sparse(t)}
        zeros = [made for other in read if other is not one and sparse
                 for made in _by_zeros(one, sparse, floats[id(other)])]
        beside = [made for source in (one, *(r for r in read if r is not one)) if masks and not zeros
                  for made in _by_masks(one, masks, floats[id(source)], source is one)]
        found = {p.name: p for p in reversed([*zeros, *beside])}
        if found:
            yield [found[n] for n in sorted(found)]


def _is_sparse(tensor: Tensor) -> bool:
    """Whether its first values hold enough zeros."""
    if not tensor.matrix or tensor.nbytes > MOST_BYTES:
        return False
    first = next(tensor.raw(), None)
    return first is not None and float((as_numbers(first, tensor.dtype) == 0).mean()) >= LEAST / 2


def _may_be_mask(name: str, tensor: Tensor) -> bool:
    return tensor.matrix and tensor.nbytes <= MOST_BYTES and (tensor.dtype == "bool" or _MASK.search(name) is not None)


def _stem(name: str) -> str:
    return _STEM.sub("", name).strip("._/")


def _by_masks(one: Checkpoint, masks: Mapping[str, Tensor], floats: Mapping[str, Tensor], same: bool
              ) -> Iterator[Pruned]:
    """Masks with the weights that share their stem and shape. Weights that are zero where they were removed tell
    nothing."""
    by_stem: dict[tuple[str, tuple[int, ...]], list[Tensor]] = {}
    for name, tensor in floats.items():
        if not same or name not in masks:
            by_stem.setdefault((_stem(name), tensor.shape), []).append(tensor)
    for name, mask in list(masks.items())[:MOST_TENSORS]:
        beside = by_stem.get((_stem(name), mask.shape), [])
        if len(beside) != 1 or beside[0].nbytes > MOST_BYTES:
            continue
        values = np.asarray(first_rows(mask, MOST_VALUES))
        kept = values != 0
        if not bool(((values == 0) | (values == 1)).all()) or not LEAST <= kept.mean() <= 1 - LEAST:
            continue
        weights = np.asarray(first_rows(beside[0], MOST_VALUES), np.float32)
        torch = same and name.endswith("_mask") and beside[0].name.endswith("_orig")
        if np.isfinite(weights).all() and (weights == 0).mean() <= DENSE:
            yield Pruned(name, one.path, weights, kept, torch)


def _by_zeros(one: Checkpoint, own: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> Iterator[Pruned]:
    """Matrices with many zeros whose counterpart in another file has hardly any."""
    for name, theirs in match(own, others).all_pairs:
        tensor, dense = own[name], others[theirs]
        if dense.nbytes > MOST_BYTES or tensor.shape != dense.shape or _is_sparse(dense):
            continue
        kept = np.asarray(first_rows(tensor, MOST_VALUES)) != 0
        if not LEAST <= kept.mean() <= 1 - LEAST:
            continue
        weights = np.asarray(first_rows(dense, MOST_VALUES), np.float32)
        if np.isfinite(weights).all() and (weights == 0).mean() <= DENSE:
            yield Pruned(name, one.path, weights, kept, True)
