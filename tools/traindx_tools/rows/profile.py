"""Statistics of one input of a model over one batch, and their summary over the batches of one role."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HEAD = ("low", "high", "whole", "nan", "mean", "std")
"""What a vector begins with; the means and then the standard deviations of the features follow, or counts of ids."""
MOST_FEATURES = 64
"""Features (channels, columns) of one input that are looked at; of more, evenly spaced ones."""
MOST_IDS = 512
"""Token ids that are counted each by itself; higher ones together."""


@dataclass(frozen=True, eq=False)
class Profile:
    """One input of one batch. `features`: means and standard deviations, shape (2, features); `ids`: counts."""

    name: str
    row_shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    whole: float
    """Share of values that are whole numbers."""
    nan: float
    mean: float
    std: float
    features: Floats
    ids: Floats
    rows: int = 1

    @classmethod
    def of(cls, name: str, row_shape: tuple[int, ...], dtype: str, vector: Floats, is_ids: bool,
           rows: int = 1) -> Profile:
        """From a vector of `HEAD` and what follows it."""
        rest = np.asarray(vector[len(HEAD):], np.float64)
        none = np.zeros((2, 0))
        low, high, whole, nan, mean, std = (float(v) for v in vector[:len(HEAD)])
        return cls(name, row_shape, dtype, low, high, whole, nan, mean, std,
                   none if is_ids else rest.reshape(2, -1), rest if is_ids else none[0], rows)


@dataclass(frozen=True, eq=False)
class Spread:
    """The batches of one role together: mean, standard deviation and how far batches differ, by feature."""

    batches: int
    name: str
    row_shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    whole: float
    mean: Floats
    """Shape (features,): of all values."""
    std: Floats
    between: Floats
    """Standard deviation of the batches' means."""
    ids: Floats
    """Shape (batches, `MOST_IDS`): shares of the ids in each batch."""
    rows: int = 1
    """Rows of these batches; a batch that came again, as an evaluation's do in each epoch, is counted once."""
    varied: Floats = field(default_factory=lambda: np.zeros(0))
    """Shape (features,): share of the batches in which the feature was not the same throughout."""


def generates(profiles: Sequence[Profile]) -> bool:
    """Whether sequences of ids grow by one from batch to batch: a model that reads what it has written itself."""
    lengths = [p.row_shape[0] for p in profiles if p.ids.size]
    grown = sum(b - a == 1 for a, b in itertools.pairwise(lengths))
    return grown > 0 and 2 * grown >= len(lengths) - 1


def together(profiles: Sequence[Profile]) -> Spread | None:
    """One role's batches of one input of one shape of features; None where there are too few, or odd ones."""
    finite = [p for p in profiles if np.isfinite(p.features).all() and np.isfinite(p.mean) and np.isfinite(p.std)]
    if not finite:
        return None
    last = finite[-1]
    same = [p for p in finite if p.features.shape == last.features.shape and p.ids.shape == last.ids.shape
            and len(p.row_shape) == len(last.row_shape) and p.dtype == last.dtype]
    means, stds = (np.stack([p.features[k] for p in same]) for k in (0, 1))
    mean = means.mean(0)
    counts = np.stack([p.ids for p in same])
    once = {(p.features.tobytes(), p.low, p.high): p.rows for p in same}
    return Spread(
        len(same), last.name, last.row_shape, last.dtype, min(p.low for p in same), max(p.high for p in same),
        float(np.mean([p.whole for p in same])), mean, np.sqrt((stds**2 + (means - mean) ** 2).mean(0)), means.std(0),
        counts / np.maximum(counts.sum(1, keepdims=True), 1.0), sum(once.values()),
        (stds > 1e-6 * np.maximum(np.abs(means), 1e-12)).mean(0))
