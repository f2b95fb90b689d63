"""What a batch holds: its tensors by name, their numbers on their own device, and keys of its rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

MOST_TENSORS, MOST_VALUES, ROW_COLUMNS = 12, 2**20, 64
NUMBERS = ("low", "high", "mean", "std", "nan", "inf", "minus_inf", "same_rows")
"""What `numbers_of` measures, in this order."""
SIDE = ("mask", "position", "timestep", "token_type", "cache", "bias")
"""Parts of the names of arguments that are no content."""


def named_tensors(value: Any, name: str = "batch", depth: int = 4) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in nested lists, tuples, dicts and dict-like objects, such as `batch["pixels"]`; at most twelve."""
    for i, item in enumerate(_walk(value, name, depth)):
        if i == MOST_TENSORS:
            return
        yield item


def _walk(value: Any, name: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            yield name, value
    elif isinstance(value, Mapping) and depth:
        for key in value:
            yield from _walk(value[key], f"{name}[{key!r}]" if name else str(key), depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for index, part in enumerate(value):
            yield from _walk(part, f"{name}[{index}]", depth - 1)


def arguments(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Tensors among the arguments of a call, by the names that `forward` gives them."""
    try:
        bound: Mapping[str, Any] = _bound(model.forward, args, kwargs)
    except (TypeError, ValueError):  # a forward without a signature
        bound = {f"argument {i}": a for i, a in enumerate(args)} | dict(kwargs)
    out: dict[str, torch.Tensor] = {}
    for name, value in bound.items():
        flat = value if not isinstance(value, Mapping) or name != "kwargs" else dict(value)
        out.update(named_tensors(flat, "" if name == "kwargs" else name))
    return dict(list(out.items())[:MOST_TENSORS])


def _bound(forward: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    function = getattr(forward, "__func__", None)
    if function is None:
        return inspect.signature(forward).bind_partial(*args, **kwargs).arguments
    bound = _signature(function).bind_partial(forward.__self__, *args, **kwargs).arguments
    return dict(list(bound.items())[1:])


@functools.lru_cache(maxsize=256)
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def numbers_of(tensor: torch.Tensor) -> torch.Tensor:
    """`NUMBERS` of a real tensor as one float64-safe vector on its device; large ones by their first rows."""
    t = tensor.detach()
    if t.ndim and t.numel() > MOST_VALUES:
        t = t[: max(1, MOST_VALUES // max(1, t[0].numel()))]
    x = t.to(torch.float64 if t.device.type == "cpu" else torch.float32).reshape(-1)
    zero = x.new_zeros(())
    if not t.is_floating_point():
        bad = [zero, zero, zero]
    else:
        bad = [torch.isnan(x).sum(), torch.isposinf(x).sum(), torch.isneginf(x).sum()]
    same = zero
    if t.ndim >= 2 and t.shape[0] >= 4:
        rows = t.reshape(t.shape[0], -1)[:, :4096]
        same = (rows == rows[:1]).all()
    std = x.std(unbiased=False) if x.numel() > 1 else zero
    return torch.stack([v.to(x.dtype) for v in (x.amin(), x.amax(), x.mean(), std, *bad, same)])


def row_keys(tensor: torch.Tensor) -> list[int]:
    """A key of each row (first dimension) from up to 64 of its values; nothing where rows say too little or lie on
    another device. Equal rows have equal keys."""
    t = tensor.detach()
    if t.device.type != "cpu" or t.ndim < 2 or t.shape[0] < 2 or t.dtype in (torch.bfloat16, torch.bool):
        return []
    rows = t.reshape(t.shape[0], -1)
    stride = max(1, rows.shape[1] // ROW_COLUMNS)
    values = np.ascontiguousarray(rows[:, ::stride].numpy())
    if values.dtype == object or values.shape[1] < 6 or len(np.unique(values[0])) < 6:
        return []
    return [hash(row.tobytes()) for row in values]


def main_tensor(batch: Any) -> torch.Tensor | None:
    """The largest tensor of a batch: what the model looks at."""
    return max((t for _, t in named_tensors(batch)), key=lambda t: t.numel(), default=None)


def mask_numbers(mask: torch.Tensor, ids: torch.Tensor | None) -> torch.Tensor:
    """Of a mask of shape (B, T): rows of all zeros, rows of all ones, rows, and of the ids where it is 1 and where it
    is 0: lowest and highest; as one vector on its device (0, 1 where there are no ids)."""
    on = mask.detach() != 0
    parts = [(~on).all(1).sum(), on.all(1).sum(), torch.full((), mask.shape[0], device=mask.device)]
    if ids is None:
        parts += [torch.full((), v, device=mask.device) for v in (0, 1, 0, 1)]
    else:
        far = torch.iinfo(torch.int32).max
        for part in (on, ~on):
            parts += [torch.where(part, ids, far).amin(), torch.where(part, ids, -far).amax()]
    return torch.stack([p.to(torch.float32) for p in parts])
