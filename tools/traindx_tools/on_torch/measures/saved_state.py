"""What lies in a value that was read from a file: parts that are states of something, known by what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.measures.origin import Origin

MOST_SAMPLES = 4_000
SAMPLE = 4


@dataclass
class Part:
    """One state. `kind`: "model", "optimizer", "scheduler" or "scaler"."""

    name: str
    """Its key, "" where the whole value is the state."""
    kind: str
    origin: Origin
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Of a model: shape by key."""
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Of a model: a few values by key, of tensors on the CPU."""
    empty: bool = False
    """Of an optimizer: it holds no moments (plain gradient descent)."""


def parts_of(value: Any, depth: int = 2, name: str = "") -> Iterator[Part]:
    """The states in a value, the whole first; parts of a state are none of their own."""
    kind = kind_of(value)
    if kind:
        yield _part(name, kind, value)
    elif isinstance(value, Mapping) and depth:
        for key, inner in list(value.items())[:64]:
            if isinstance(inner, (Mapping, torch.nn.Module)):
                state = inner.state_dict() if isinstance(inner, torch.nn.Module) else inner
                yield from parts_of(state, depth - 1, f"{name}.{key}".lstrip("."))


def kind_of(value: Any) -> str:
    """What kind of state it is, "" for anything else."""
    if not isinstance(value, Mapping) or not value:
        return ""
    if "state" in value and "param_groups" in value:
        return "optimizer"
    if "scale" in value and "growth_factor" in value:
        return "scaler"
    if "last_epoch" in value and "_step_count" in value:
        return "scheduler"
    tensors = sum(isinstance(v, torch.Tensor) for v in value.values())
    return "model" if tensors >= 2 and tensors >= 0.8 * len(value) and all(isinstance(k, str) for k in value) else ""


def sample_of(tensor: torch.Tensor) -> tuple[float, ...]:
    """A few values, to know a copy by."""
    flat = tensor.detach().reshape(-1)
    return tuple(float(v) for v in flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE])


def _part(name: str, kind: str, value: Any) -> Part:
    part = Part(name, kind, Origin(value))
    if kind == "model":
        for key, tensor in list(value.items())[:MOST_SAMPLES]:
            if isinstance(tensor, torch.Tensor):
                part.shapes[key] = tuple(tensor.shape)
                if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel():
                    part.samples[key] = sample_of(tensor)
    elif kind == "optimizer":
        part.empty = not value["state"]
    return part
