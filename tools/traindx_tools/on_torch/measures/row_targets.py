"""What a loss compares the output of a call with, one row of numbers for each row of its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from traindx_tools.on_torch.measures.loss_graph import nodes, targets

_DIFFERENCE = ("PowBackward0", "AbsBackward0")
"""Nodes that keep what they were given: in losses written by hand mostly output minus target."""
MOST_NODES = 60


def row_targets(loss: torch.Tensor, rows: int, outputs: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """float32 shape (rows, values): the target of the nearest term with the same number of values for each row.

    Of a loss that torch has no function for, `((output - target) ** 2).mean()`, it is the output minus the difference.
    """
    for one in targets(loss):
        found = _in_rows(one.values, rows)
        if found is not None:
            return found
    for node in nodes(loss, MOST_NODES):
        if node.name() not in _DIFFERENCE:
            continue
        try:
            away = node._saved_self.detach()
        except (RuntimeError, AttributeError):  # freed, or another version of torch
            continue
        for output in outputs:
            if output.numel() == away.numel() and output.is_floating_point() and (
                    found := _in_rows(output.detach().reshape(-1) - away.reshape(-1), rows)) is not None:
                return found
    return None


def given_target(args: Sequence[Any], kwargs: Mapping[str, Any], rows: int) -> torch.Tensor | None:
    """The target among the arguments of a loss of `torch.nn.functional`."""
    target = args[1] if len(args) > 1 else kwargs.get("target")
    return _in_rows(target, rows) if type(target) is torch.Tensor else None


def _in_rows(values: torch.Tensor, rows: int) -> torch.Tensor | None:
    if not values.numel() or values.numel() % rows or values.is_complex() or values.layout != torch.strided:
        return None
    return values.detach().reshape(rows, -1).to(torch.float32)
