"""What the graph behind a loss remembers: the targets of its terms. Read before the backward pass frees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

MOST_NODES = 300
_CLASSES = ("NllLossBackward", "NllLoss2DBackward", "NllLossNdBackward")
_REGRESSION = ("MseLossBackward", "L1LossBackward", "SmoothL1LossBackward", "HuberLossBackward")


@dataclass(frozen=True)
class Target:
    """The target of one term. `classes` and `ignored` (the index without weight) of a classification, else None."""

    values: torch.Tensor
    classes: int | None
    ignored: int | None


def nodes(loss: torch.Tensor, most: int = MOST_NODES) -> Iterator[Any]:
    """Nodes of the graph, the nearest to the loss first."""
    waiting: deque[Any] = deque([loss.grad_fn])
    seen: set[Any] = set()
    while waiting and len(seen) < most:
        node = waiting.popleft()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(following for following, _ in node.next_functions)


def targets(loss: torch.Tensor) -> list[Target]:
    """The targets of cross entropies and regressions in the graph; at most eight. No copies."""
    found = []
    for node in nodes(loss):
        kind = node.name()
        if not kind.startswith(_CLASSES + _REGRESSION):
            continue
        try:
            if kind.startswith(_CLASSES):
                found.append(Target(node._saved_target.detach(), node._saved_self.shape[1], node._saved_ignore_index))
            else:
                found.append(Target(node._saved_target.detach(), None, None))
        except (RuntimeError, AttributeError, IndexError):  # freed, or another version of torch
            continue
        if len(found) == 8:
            break
    return found
