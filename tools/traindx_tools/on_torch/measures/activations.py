"""Numbers of an activation: what a layer takes, from at most 512 rows, on its own device."""

from __future__ import annotations

import math

import torch

ROWS = 512
NUMBERS = ("rms", "largest", "spread", "saturated", "zeros", "low", "high")
"""What `numbers_of` measures, in this order."""
NEAR = 1e-3
"""How near to its bound a tanh or sigmoid counts as saturated: the slope there is below 0.2 % and 0.1 %."""
HALF_MAX = 65504.0


def features_last(x: torch.Tensor, convolution: bool) -> torch.Tensor:
    """At most 512 rows of (rows, features), float32. Of a convolution's (B, C, ...) places are rows as well."""
    x = x.detach()
    if convolution:
        places = math.prod(x.shape[2:])
        keep = max(1, ROWS // max(1, x.shape[0]))
        flat = x.reshape(x.shape[0], x.shape[1], -1)[:ROWS, :, :: max(1, places // keep)]
        return flat.movedim(1, -1).reshape(-1, x.shape[1])[:ROWS].float()
    rows = x.reshape(-1, x.shape[-1])
    return rows[:: max(1, rows.shape[0] // ROWS)][:ROWS].float()


def numbers_of(rows: torch.Tensor, function: str) -> torch.Tensor:
    """`NUMBERS` of (rows, features). `function` is what made it ("tanh", "sigmoid" or anything): it sets the bounds.

    "spread" is the norm of the differences from the mean row over the norm of all: 0 where every row is the same.
    """
    largest = rows.abs().amax()
    size = torch.linalg.vector_norm(rows)
    spread = torch.linalg.vector_norm(rows - rows.mean(0)) / size.clamp_min(1e-30)
    if function == "tanh":
        saturated = (rows.abs() > 1 - NEAR).float().mean()
    elif function == "sigmoid":
        saturated = ((rows < NEAR) | (rows > 1 - NEAR)).float().mean()
    else:
        saturated = torch.zeros_like(size)
    zeros = (rows == 0).float().mean()
    return torch.stack([size / math.sqrt(max(1, rows.numel())), largest, spread, saturated, zeros, rows.amin(),
                        rows.amax()])


_RECTIFIERS = {"Threshold": "relu", "Hardtanh": "relu", "ClampMin": "relu", "Hardswish": "relu"}
"""What gives exactly 0 for a range of inputs, as ReLU does."""


def function_of(x: torch.Tensor) -> str:
    """What made a tensor, from its graph: "relu", "tanh", "sigmoid", "softmax", "" for anything else. Looks through
    dropout and changes of shape."""
    node = x.grad_fn
    for _ in range(3):
        if node is None:
            return ""
        name = node.name()
        for kind in ("Relu", "Threshold", "Hardtanh", "ClampMin", "Hardswish", "Tanh", "Sigmoid", "Softmax"):
            if name.startswith((f"{kind}Backward", f"Native{kind}Backward")):
                return _RECTIFIERS.get(kind, kind.lower())
        if not name.startswith(("View", "Reshape", "UnsafeView", "Transpose", "Permute", "NativeDropout", "MulBackward",
                                "Clone", "ToCopy", "MaxPool", "Dropout", "Expand", "Alias")):
            return ""
        node = node.next_functions[0][0] if node.next_functions else None
    return ""


def entropy_of(weights: torch.Tensor) -> torch.Tensor:
    """Of attention weights (..., rows, keys): mean entropy over ln(keys), and the mean largest weight; as (2,).

    Only the last quarter of the rows is taken: the first rows of a causal attention have few keys to choose from.
    """
    w = weights.detach()[..., -max(1, weights.shape[-2] // 4):, :].float()
    entropy = -(w * w.clamp_min(1e-30).log()).sum(-1) / math.log(max(2, w.shape[-1]))
    return torch.stack([entropy.mean(), w.amax(-1).mean()])


def distance_of_statistics(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
    """Of a BatchNorm's input (B, C, ...) and its running statistics: the median over the channels of the difference of
    the means in standard deviations of the batch, and of the logarithm of the ratio of the variances; as (2,)."""
    dims = [d for d in range(x.ndim) if d != 1]
    batch = x.detach().float()
    here, spread = batch.mean(dims), batch.var(dims, unbiased=False).clamp_min(1e-12)
    return torch.stack([((here - mean.float()).abs() / spread.sqrt()).median(),
                        (var.float().clamp_min(1e-12) / spread).log().abs().median()])
