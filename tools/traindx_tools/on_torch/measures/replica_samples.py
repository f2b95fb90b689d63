"""What a rank writes of its weights and gradients so that they can be held against another rank's: three numbers each.

The norm of at most 256 values at fixed places and their sums under two fixed patterns of signs: gradients that differ
by a share of their norm move the sums by about that share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

MOST, VALUES = 64, 256
"""Parameters that are watched, and values of each."""
GLIMPSE = 16
_SIGNS = np.where(np.random.default_rng(20260101).integers(0, 2, (2, VALUES)) == 1, 1.0, -1.0)
Digest = tuple[float, float, float]


def comparable(parameter: Any) -> bool:
    """Whether the same place of it holds the same on every replica: no shard, nothing sparse or empty."""
    plain = parameter.layout == torch.strided and not hasattr(parameter, "to_local") and parameter.numel() > 0
    return plain and parameter.requires_grad and parameter.is_floating_point() and parameter.device.type != "meta"


def spread(parameters: Sequence[torch.nn.Parameter], first: Sequence[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    """At most `MOST`, evenly over all; a quarter of them are kept for those that are to come first."""
    if len(parameters) <= MOST:
        return list(parameters)
    chosen = {id(p): p for p in first[: MOST // 4]}
    left = MOST - len(chosen)
    for k in range(left):
        p = parameters[k * (len(parameters) - 1) // (left - 1)]
        chosen.setdefault(id(p), p)
    return list(chosen.values())


def sample(tensors: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """(tensors, VALUES), float32, on the device of the first; NaN where there is no value."""
    rows: list[torch.Tensor] = []
    for tensor in tensors:
        row = torch.full((VALUES,), torch.nan, device=None if tensor is None else tensor.device)
        if tensor is not None and tensor.layout == torch.strided and not hasattr(tensor, "to_local"):
            held = tensor.detach().reshape(-1)
            stride = max(1, held.numel() // VALUES)
            stride -= 1 - stride % 2 if stride > 1 else 0  # an odd stride does not stay in one column of a matrix
            part = held[: stride * VALUES : stride][:VALUES]
            row[: len(part)] = part
        rows.append(row)
    home = next((t.device for t in tensors if t is not None), torch.device("cpu"))
    return torch.stack([r.to(home, non_blocking=True) for r in rows])


def glimpse(parameter: torch.Tensor) -> torch.Tensor:
    """A copy of sixteen values of a contiguous tensor, float32, on its device."""
    held = parameter.detach().view(-1)
    return held[:: max(1, held.numel() // GLIMPSE)][:GLIMPSE].to(torch.float32, copy=True)


def digests(values: NDArray[np.float64]) -> list[Digest | None]:
    """Of each row; None where it holds nothing, or something that is not finite."""
    found: list[Digest | None] = []
    for row in values:
        held = row[~np.isnan(row)]
        if not len(held) or not np.isfinite(held).all():
            found.append(None)
            continue
        first, second = (float(signs @ held) for signs in _SIGNS[:, : len(held)])
        found.append((_short(float(np.linalg.norm(held))), _short(first), _short(second)))
    return found


def constant(values: NDArray[np.float64]) -> list[bool]:
    """Whether all values of a row are one: such a start is equal anywhere."""
    return [bool(np.nanmin(row) == np.nanmax(row)) if not np.isnan(row).all() else True for row in values]


def _short(value: float) -> float:
    return float(f"{value:.7g}")
