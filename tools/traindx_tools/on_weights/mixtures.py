"""A file whose tensors are sums of those of other files: averages, soups, merges of several trainings.

The parts that the others have in it are the same for every tensor, and are found by least squares, tensor by tensor.
What holds for nearly all tensors to the rounding of the file was made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.file_sets import Saved

FEWEST, SHARE = 4, 0.6
"""Tensors that are such a sum, and the share of those that moved."""
_EXACT, _OFF, _PART = 2e-3, 0.05, 0.02
_ROUNDING = {"float16": 1e-3, "bfloat16": 8e-3}
"""Relative rounding of the narrower types; float32 leaves none that matters here."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """`parts`: what of each of `others` is in `made`. `odd`: the tensors that are no such sum, with their own parts and
    what those leave of the distance between the others."""

    made: Saved
    others: tuple[Saved, ...]
    parts: NDArray[np.float64]
    good: tuple[str, ...]
    odd: tuple[tuple[str, NDArray[np.float64], float], ...]


def mixture_of(files: Sequence[Saved]) -> Mixture | None:
    """The file that is a sum of two others or more: of several, as each is one of the rest, that with the least shares.
    Raises UnreadableInput."""
    found = [m for made in files if (m := _mixture(made, tuple(f for f in files if f is not made))) is not None]
    return min(found, key=lambda m: float(np.abs(m.parts).sum()), default=None)


def _mixture(made: Saved, others: tuple[Saved, ...]) -> Mixture | None:
    fits = {n: fit for n in made.tensors if (fit := _fit(made, others, n)) is not None}
    exact = [p for p, left, _ in fits.values() if left <= _EXACT]
    if len(exact) < max(FEWEST, SHARE * len(fits)):
        return None
    parts = np.median(np.array(exact), axis=0)
    if (np.abs(parts) > _PART).sum() < 2:
        return None
    good, odd = [], []
    for name, (own, left, spread) in fits.items():
        off = float(np.linalg.norm(made.sample(name) - _columns(others, name) @ parts)) / spread
        if off <= _OFF:
            good.append(name)
        elif off > 2 * _OFF + _ROUNDING.get(made.tensors[name].dtype, 0.0) * 10:
            odd.append((name, own, left))
    return Mixture(made, others, parts, tuple(good), tuple(odd)) if len(good) >= max(
        FEWEST, SHARE * len(fits)) else None


def _columns(others: Sequence[Saved], name: str) -> NDArray[np.float64]:
    return np.stack([f.sample(name) for f in others], axis=1)


def _fit(made: Saved, others: Sequence[Saved], name: str) -> tuple[NDArray[np.float64], float, float] | None:
    """The parts of the others in a tensor, what they leave, and how far the others are apart; None where they are not.

    A tensor that no more than two of three files share tells nothing of the parts.
    """
    columns = _columns(others, name)
    if not np.isfinite(columns).all() or not np.isfinite(made.sample(name)).all() or len(columns) <= 2 * len(others):
        return None
    middle = columns.mean(axis=1, keepdims=True)
    apart = np.linalg.norm(columns - middle, axis=0)
    spread, size = float(apart.mean()), float(np.linalg.norm(middle))
    values = np.linalg.svd(columns, compute_uv=False)
    rounding = _ROUNDING.get(made.tensors[name].dtype, 1e-7) * size
    if values[-1] <= max(1e-6 * values[0], 3 * rounding):
        return None
    parts = np.asarray(np.linalg.lstsq(columns, made.sample(name), rcond=None)[0], np.float64)
    left = float(np.linalg.norm(made.sample(name) - columns @ parts))
    return parts, max(0.0, left - rounding) / spread, spread
