"""How much each element of a term counts in it: 1 in a sum, 1/n in a mean over n, as the graph of the loss says."""

from __future__ import annotations

import math
from typing import Any

import torch

MOST_NODES = 64
REDUCED, SUMMED = 1, 2
"""What the graph calls the reductions of torch's losses."""
_HANDED_ON = ("Neg", "View", "UnsafeView", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Clone", "Alias")
_LOSSES = ("MseLoss", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss", "KlDiv", "SoftMarginLoss")


def element_weight(term: torch.Tensor) -> float | None:
    """The derivative of a scalar term by one element of what it reduces, as a size; None where nothing is reduced.

    `x.sum()` gives 1, `x.mean()` 1/n, `0.5 * x.sum(1).mean()` half of one over the rows. Reads the graph and computes
    nothing. A loss over classes counts its rows.
    """
    node: Any = term.grad_fn
    weight, reduced = 1.0, False
    for _ in range(MOST_NODES):
        if node is None:
            break
        name = node.name().split("Backward")[0]
        if name.startswith(_LOSSES):
            many = node._saved_self.numel() if node._saved_reduction == REDUCED else 1
            return weight / max(1, many) if node._saved_reduction in (REDUCED, SUMMED) else None
        if name.startswith("NllLoss"):
            return weight / max(1, node._saved_target.numel()) if node._saved_reduction == REDUCED else weight
        if name in ("Mean", "Sum"):
            weight, reduced = weight / (_reduced(node) if name == "Mean" else 1), True
        elif name in ("Mul", "Div"):
            by = _number(node)
            if by is None:
                break
            weight = weight * by if name == "Mul" else weight / by
        elif not name.startswith(_HANDED_ON):
            break
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return weight if reduced and math.isfinite(weight) and weight > 0 else None


def _reduced(node: Any) -> int:
    sizes = [int(n) for n in node._saved_self_sym_sizes]
    dims = getattr(node, "_saved_dim", None)
    chosen = [sizes[_signed(int(d)) % len(sizes)] for d in dims] if dims and sizes else sizes
    return max(1, math.prod(chosen))


def _signed(index: int) -> int:
    """A dimension as it was meant: the graph keeps -1 as 2**64 - 1."""
    return index - 2 ** 64 if index >= 2 ** 63 else index


def _number(node: Any) -> float | None:
    """The single number that a product or quotient has beside the way of the gradient; None where it is an array."""
    if sum(n is not None for n, _ in node.next_functions) != 1:
        return None
    found = [getattr(node, attribute, None) for attribute in ("_saved_other", "_saved_self")]
    numbers = [abs(float(f)) for f in found if isinstance(f, (int, float)) or (
        isinstance(f, torch.Tensor) and f.numel() == 1 and not f.requires_grad)]
    return numbers[0] if numbers and numbers[0] > 0 else None
