"""Where a tensor lies, for asking whether two are one."""

from __future__ import annotations

import torch


def place_in_memory(tensor: torch.Tensor) -> tuple[int, int]:
    """Storage and offset; a tensor that is not strided (sparse) is itself alone."""
    if tensor.layout != torch.strided:
        return id(tensor), -1
    return int(tensor.untyped_storage()._cdata), int(tensor.storage_offset())
