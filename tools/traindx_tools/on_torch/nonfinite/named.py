"""Tensors in nested lists, tuples and dicts with where they are, such as `batch['pixels']`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def named_parts(value: Any, path: str, depth: int = 4) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor of a value and the expression that leads to it."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict) and depth:
        for key, part in value.items():
            yield from named_parts(part, f"{path}[{key!r}]", depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for index, part in enumerate(value):
            yield from named_parts(part, f"{path}[{index}]", depth - 1)
