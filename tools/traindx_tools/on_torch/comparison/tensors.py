"""How far two outputs are apart: nested outputs flattened, difference relative to the first, in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

TOLERANCES = {
    torch.float64: 1e-7, torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 1.6e-2,
}
"""Relative tolerance by dtype: the defaults of `torch.testing.assert_close`."""

PREFIXES = ("_orig_mod.", "module.", "_fsdp_wrapped_module.", "_forward_module.")
"""What `torch.compile`, DDP, FSDP and Fabric put before a module's path."""


def plain_path(path: str) -> str:
    """A module path without what wrappers add to it."""
    for prefix in PREFIXES:
        path = f".{path}".replace(f".{prefix}", ".")[1:]
    return path


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Floating tensors of an output, in order: tensors, tuples, lists, mappings and dataclass-like outputs of them."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() or value.is_complex():
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def moved(value: Any, like: torch.nn.Module) -> Any:
    """The value with its floating tensors on the device and in the dtype of a module's first parameter."""
    reference = next((p for p in like.parameters() if p.is_floating_point()), None)
    if reference is None:
        return value
    return _mapped(value, reference)


def _mapped(value: Any, reference: torch.Tensor) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(reference.device, reference.dtype if value.is_floating_point() else value.dtype)
    if isinstance(value, dict):
        return {k: _mapped(v, reference) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_mapped(v, reference) for v in value)
    return value


def apart(a: Any, b: Any) -> float:
    """Largest relative difference ||a-b|| / ||a|| over the tensors of two outputs.

    0.0 where both are equal, inf where shapes or the places of non-finite values differ, nan never.
    """
    first, second = list(tensors_in(a)), list(tensors_in(b))
    if len(first) != len(second):
        return math.inf
    return max((_apart(x, y) for x, y in zip(first, second, strict=True)), default=0.0)


def _apart(x: torch.Tensor, y: torch.Tensor) -> float:
    if x.shape != y.shape:
        return math.inf
    x, y = (t.detach().to("cpu", torch.complex128 if t.is_complex() else torch.float64) for t in (x, y))
    finite = torch.isfinite(x)
    if not torch.equal(finite, torch.isfinite(y)):
        return math.inf
    x, y = x[finite], y[finite]
    norm, gap = float(torch.linalg.vector_norm(x)), float(torch.linalg.vector_norm(x - y))
    return gap / norm if norm > 0 else (0.0 if gap == 0 else math.inf)


def tolerance_of(a: Any, b: Any) -> float:
    """The tolerance of the coarsest dtype in two outputs."""
    dtypes = [t.dtype for t in (*tensors_in(a), *tensors_in(b))]
    return max((TOLERANCES.get(d, TOLERANCES[torch.float32]) for d in dtypes), default=TOLERANCES[torch.float32])
