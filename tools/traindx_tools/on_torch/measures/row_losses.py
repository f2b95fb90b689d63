"""What a loss says of each row of its batch, from what its graph remembers of the last step; no forward is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.measures.loss_graph import nodes, signed

_CLASSES = ("NllLossBackward", "NllLoss2DBackward", "NllLossNdBackward")
_NUMBERS = ("MseLossBackward", "L1LossBackward", "SmoothL1LossBackward", "HuberLossBackward")
_TWO = ("BinaryCrossEntropyBackward", "BinaryCrossEntropyWithLogitsBackward")
MOST_VALUES = 2**24
"""Values of an answer above which it is not read."""


@dataclass(frozen=True, eq=False)
class RowLosses:
    """`columns`: float32 shape (rows, 3) on the device: label, loss, answer. `target`: of whole numbers, as given."""

    kind: str
    columns: torch.Tensor
    target: torch.Tensor | None
    ignored: int | None


def row_losses(loss: torch.Tensor, rows: int) -> RowLosses | None:
    """The nearest term of the loss that has one entry, or the same number of entries, for each of `rows` rows."""
    for node in nodes(loss, 60):
        name = node.name()
        try:
            if name.startswith(_CLASSES):
                found = _of_classes(node, rows)
            elif name.startswith(_NUMBERS):
                found = _of_numbers(node, rows)
            elif name.startswith(_TWO):
                found = _of_two(node, rows, "Logits" in name)
            else:
                continue
        except (RuntimeError, AttributeError, IndexError):  # freed, changed in place, another version of torch
            continue
        if found is not None:
            return found
    return None


def _pair(node: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return node._saved_self.detach(), node._saved_target.detach()


def _of_classes(node: Any, rows: int) -> RowLosses | None:
    log_p, target = _pair(node)
    if target.numel() % rows or log_p.numel() > MOST_VALUES or not target.numel():
        return None
    if log_p.ndim == 1:
        log_p, target = log_p[None], target.reshape(1)
    ignored = signed(node._saved_ignore_index)
    counted = target != ignored
    there = torch.where(counted, target, 0)
    each = -log_p.gather(1, there.unsqueeze(1)).squeeze(1).to(torch.float32)
    each = torch.where(counted, each, 0.0).reshape(rows, -1)
    weight = counted.reshape(rows, -1).to(torch.float32)
    lost = each.sum(1) / weight.sum(1)
    if each.shape[1] > 1:
        none = torch.full_like(lost, torch.nan)
        return RowLosses("tokens", torch.stack([none, lost, none], 1), target, ignored)
    label = torch.where(counted.reshape(-1), target.reshape(-1).to(torch.float32), torch.nan)
    answer = log_p.argmax(1).reshape(-1).to(torch.float32)
    return RowLosses("classes", torch.stack([label, lost, answer], 1), target, ignored)


def _of_numbers(node: Any, rows: int) -> RowLosses | None:
    answer, target = _pair(node)
    if answer.shape != target.shape or not target.ndim or target.shape[0] != rows or target.numel() > MOST_VALUES:
        return None
    a, t = (v.reshape(rows, -1).to(torch.float32) for v in (answer, target))
    lost = ((a - t) ** 2).mean(1)
    if t.shape[1] > 1:
        none = torch.full_like(lost, torch.nan)
        return RowLosses("other", torch.stack([none, lost, none], 1), None, None)
    return RowLosses("squared", torch.stack([t[:, 0], lost, a[:, 0]], 1), None, None)


def _of_two(node: Any, rows: int, logits: bool) -> RowLosses | None:
    answer, target = _pair(node)
    if answer.shape != target.shape or target.numel() != rows:
        return None
    a, t = answer.reshape(-1).to(torch.float32), target.reshape(-1).to(torch.float32)
    p = torch.sigmoid(a) if logits else a
    p = p.clamp(1e-7, 1 - 1e-7)
    lost = -(t * p.log() + (1 - t) * (1 - p).log())
    return RowLosses("classes", torch.stack([t, lost, (p > 0.5).to(torch.float32)], 1), None, None)
