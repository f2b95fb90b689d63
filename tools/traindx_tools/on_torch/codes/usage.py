"""How the codes of a codebook are used: share used, perplexity, the most used one."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Usage:
    """Of `samples` assignments to a codebook of `size` codes: distinct codes `used`, exp(entropy) `perplexity`,
    share of the most used code `largest`."""

    size: int
    samples: int
    used: int
    perplexity: float
    largest: float

    @property
    def utilisation(self) -> float:
        """Distinct codes over those that this many uniform draws would show: size (1 - exp(-samples / size))."""
        expected = self.size * -torch.expm1(torch.tensor(-self.samples / self.size)).item() if self.size else 0.0
        return min(1.0, self.used / expected) if expected else 0.0


def code_usage(counts: torch.Tensor) -> Usage:
    """Usage from a histogram: `counts` has one non-negative number for each code. Reads the device once."""
    counts = counts.detach().to("cpu", torch.float64).flatten()
    total = float(counts.sum())
    if total <= 0:
        return Usage(len(counts), 0, 0, 0.0, 0.0)
    share = counts / total
    entropy = -(share[share > 0] * share[share > 0].log()).sum()
    return Usage(len(counts), int(total), int((counts > 0).sum()), float(entropy.exp()), float(share.max()))


def histogram(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Counts by code on the indices' device; indices out of range are left out. No synchronisation."""
    flat = indices.detach().flatten().long()
    inside = (flat >= 0) & (flat < size)
    counts = torch.zeros(size + 1, dtype=torch.float32, device=flat.device)
    counts.scatter_add_(0, torch.where(inside, flat, size), torch.ones_like(flat, dtype=torch.float32))
    return counts[:size]
