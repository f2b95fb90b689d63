"""How many processes train together."""

from __future__ import annotations

import torch


def world_size() -> int:
    """The processes of torch.distributed's default group; 1 where there is none."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if there else 1
