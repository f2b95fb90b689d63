"""The simple noise scale of the gradient, estimated without bias from its squared norms at two batch sizes.

McCandlish, Kaplan, Amodei et al. 2018, An Empirical Model of Large-Batch Training, arXiv:1812.06162, equations 2.9 and
A.1 to A.2. With E|G_B|^2 = |G|^2 + tr(Sigma) / B for the mean gradient G_B of B samples, two sizes b < B give

    |G|^2     ~ (B |G_B|^2 - b |G_b|^2) / (B - b)
    tr(Sigma) ~ (|G_b|^2 - |G_B|^2) / (1/b - 1/B)
    B_simple  = tr(Sigma) / |G|^2

The first two are unbiased and each is averaged over steps before they are divided; their ratio in one step is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class NoiseScale:
    """What so many pairs of norms say together. Squared norms are in the unit of the gradients they came from."""

    gradient_square: float
    """|G|^2, of the gradient without noise; may come out below 0 where noise hides it."""
    trace: float
    """tr(Sigma): the variance of one sample's gradient, summed over all parameters."""
    error: float
    """Standard error of `gradient_square`; nan from a single pair."""
    batch: float
    """Samples behind the larger of the two gradients, typical of the pairs."""
    pairs: int

    @property
    def known(self) -> bool:
        """Whether the gradient stands out of its noise, by two standard errors: the ratio means something."""
        return (self.gradient_square > 0 and self.trace >= 0
                and not (math.isfinite(self.error) and self.gradient_square < 2 * self.error))

    @property
    def scale(self) -> float:
        """B_simple in samples; nan where the gradient does not stand out of its noise."""
        return self.trace / self.gradient_square if self.known else math.nan

    @property
    def in_words(self) -> str:
        """One clause."""
        if not self.known:
            return f"not measurable: the gradient does not stand out of its noise in {self.pairs} measurements"
        return f"{self.scale:.3g} samples (batch {self.batch:g})"


def from_norms(small_square: float, big_square: float, small: float, big: float) -> tuple[float, float]:
    """Unbiased (|G|^2, tr(Sigma)) of one pair: squared norms of mean gradients over `small` < `big` samples."""
    gradient = (big * big_square - small * small_square) / (big - small)
    return gradient, (small_square - big_square) / (1 / small - 1 / big)


def combined(pairs: Sequence[tuple[float, float]], batch: float) -> NoiseScale:
    """Pairs of (|G|^2, tr(Sigma)) averaged; ValueError where there are none."""
    if not pairs:
        raise ValueError("no pair of norms")
    values = np.asarray(pairs, dtype=np.float64)
    error = float(values[:, 0].std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return NoiseScale(float(values[:, 0].mean()), float(values[:, 1].mean()), error, batch, len(values))
