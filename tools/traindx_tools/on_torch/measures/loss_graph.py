"""What the graph behind a loss remembers: the targets of its terms. Read before the backward pass frees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
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
                found.append(Target(node._saved_target.detach(), node._saved_self.shape[1],
                                    signed(node._saved_ignore_index)))
            else:
                found.append(Target(node._saved_target.detach(), None, None))
        except (RuntimeError, AttributeError, IndexError):  # freed, or another version of torch
            continue
        if len(found) == 8:
            break
    return found


@dataclass(frozen=True)
class Softmax:
    """A softmax over a matrix of `rows` and `classes`; `log`: it gives logarithms."""

    rows: int
    classes: int
    axis: int
    log: bool


def softmax_of(loss: torch.Tensor, made: Sequence[Any]) -> Softmax | None:
    """The softmax in the graph that takes a matrix made by one of these nodes, or that is one of them."""
    for node in nodes(loss):
        name = node.name()
        if not name.startswith(("LogSoftmaxBackward", "SoftmaxBackward")):
            continue
        if not any(node is m for m in made) and not any(f is m for f, _ in node.next_functions for m in made):
            continue
        try:
            shape = tuple(node._input_metadata[0].shape)
            axis = signed(node._saved_dim)
        except (RuntimeError, AttributeError, IndexError):  # freed, or another version of torch
            continue
        if len(shape) == 2:
            return Softmax(int(shape[0]), int(shape[1]), axis % 2, name.startswith("Log"))
    return None


def signed(index: int) -> int:
    """Torch hands an index of 64 bits out as if it had no sign."""
    return index - 2**64 if index >= 2**63 else index


def broadcast_of(loss: torch.Tensor, rows: int) -> tuple[str, tuple[int, ...], tuple[int, ...]] | None:
    """A comparison of every prediction with every target, near the loss: its kind ("loss" or "difference"), the shape
    of the prediction and that of the comparison. `rows` is the size of the batch, 0 where it is not known."""
    for node in nodes(loss, 40):
        name = node.name()
        try:
            if name.startswith(_REGRESSION):
                found = _stretched(node._saved_self, node._saved_target)
            elif name.startswith("SubBackward"):
                found = _pairs(node, rows)
            else:
                continue
        except (RuntimeError, AttributeError, IndexError):  # freed, or another version of torch
            continue
        if found is not None:
            return ("loss" if name.startswith(_REGRESSION) else "difference", *found)
    return None


def _stretched(prediction: torch.Tensor, target: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Both sides were stretched, each along another dimension: a stretched dimension has a stride of 0."""
    if prediction.shape != target.shape:
        return None
    one, other = ({d for d in range(t.ndim) if t.shape[d] > 1 and t.stride(d) == 0} for t in (prediction, target))
    if not one or not other or one & other:
        return None
    before = tuple(1 if d in one else n for d, n in enumerate(prediction.shape))
    return before, tuple(prediction.shape)


def _pairs(node: Any, rows: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A difference of shape (B, B) of which one side alone has a gradient and B values."""
    result = tuple(node._input_metadata[0].shape)
    sides = [(following, index) for following, index in node.next_functions if following is not None]
    if len(sides) != 1 or len(result) != 2 or result[0] != result[1] or result[0] < 2 or result[0] != rows:
        return None
    given = tuple(sides[0][0]._input_metadata[sides[0][1]].shape)
    return (given, result) if given in ((rows, 1), (rows,), (1, rows)) else None
