"""Fused numbers over lists of parameters: one tensor for all of them, nothing read by the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SAMPLE, SAMPLE_SHARE = 1024, 128
"""Values sampled of a parameter: at most 1024 and at most a 128th of it (but 16): below 1 % of the memory."""


def local(tensor: Any) -> torch.Tensor:
    """The part of a tensor that this process holds: of a DTensor (FSDP2) its shard, of a sparse one its values."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return tensor._values() if tensor.is_sparse else tensor  # type: ignore[no-any-return]


def norms(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The 2-norm of each tensor as one float32 tensor of shape (n,), on the device of the first.

    Lists of one device and dtype are one fused kernel; others are grouped. Shards give the norm of the local part.
    """
    import torch

    if not tensors:
        return torch.zeros(0)
    parts = [local(t) for t in tensors]
    if len({(t.device, t.dtype) for t in parts}) == 1:
        return torch.stack(torch._foreach_norm(parts)).float()
    single = [torch.linalg.vector_norm(t, dtype=torch.float32) for t in parts]
    return torch.stack([n.to(single[0].device) for n in single])


def positions(numel: int) -> tuple[int, int]:
    """Stride and count of the values that are sampled of a parameter of `numel` values."""
    count = min(numel, SAMPLE, max(16, numel // SAMPLE_SHARE))
    stride = max(1, numel // max(count, 1))
    stride -= 1 - stride % 2  # an odd stride does not stay in one column of a matrix
    return max(1, stride), count


def sampled(tensors: Iterable[torch.Tensor | None], counts: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Values of each tensor at its `positions`, one after the other; 0 for a None. float32, float64 where one is."""
    import torch

    parts: list[torch.Tensor] = []
    for tensor, (stride, count) in zip(tensors, counts, strict=True):
        if tensor is None or tensor.is_sparse:
            parts.append(torch.zeros(count))
            continue
        part = local(tensor).reshape(-1)[: stride * count : stride]
        parts.append(part if part.dtype == torch.float64 else part.float())
    devices = {p.device for p in parts if p.device.type != "cpu"}
    device = next(iter(devices)) if devices else torch.device("cpu")
    return torch.cat([p.to(device, non_blocking=True) for p in parts]) if parts else torch.zeros(0)
