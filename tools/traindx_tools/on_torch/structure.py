"""What a model is made of once its wrappers are off: the module a person wrote, and the paths of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from traindx_tools.on_torch.probe import Scene

if TYPE_CHECKING:
    import torch

_INNER = {"DistributedDataParallel": "module", "DataParallel": "module", "FullyShardedDataParallel": "module",
          "OptimizedModule": "_orig_mod", "DeepSpeedEngine": "module", "_DDPSinkBackward": "module"}  # fmt: skip
"""Wrappers by the name of their class, and the attribute that holds what they wrap."""


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module inside DDP, FSDP, DataParallel, DeepSpeed and `torch.compile`, in any order."""
    for _ in range(8):
        inner = getattr(model, _INNER.get(type(model).__name__, ""), None)
        if inner is None:
            return model
        model = inner
    return model


def replicas_of(model: torch.nn.Module) -> int:
    """Processes that average gradients through this wrapper: 1 for all but DDP, 0 where it shards them."""
    for _ in range(8):
        kind = type(model).__name__
        if kind == "DistributedDataParallel":
            group: Any = model.process_group
            return int(group.size())
        if kind in ("FullyShardedDataParallel", "DeepSpeedEngine"):
            return 0
        inner = getattr(model, _INNER.get(kind, ""), None)
        if inner is None:
            return 1
        model = inner
    return 1


def modules_of(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """(path, module), each module once. A program may have its own `parameters` or `named_modules`: none is called."""
    seen: set[int] = set()
    waiting = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        inside = [(f"{path}.{name}" if path else name, m) for name, m in module._modules.items() if m is not None]
        waiting += reversed(inside)


def holds_tensors(model: torch.nn.Module) -> bool:
    """Whether a parameter or a buffer lies somewhere in it."""
    return any(t is not None for _, m in modules_of(model) for t in (*m._parameters.values(), *m._buffers.values()))


def add_model(scene: Scene, model: torch.nn.Module) -> None:
    """Enters a model and the paths of its modules and parameters; those of a second model start with its class."""
    first = "" if not scene.models else f"{type(model).__name__}."
    scene.models.append(model)
    for path, module in modules_of(model):
        scene.module_paths.setdefault(id(module), f"{first}{path}".rstrip(".") or type(model).__name__)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                scene.parameter_paths.setdefault(id(parameter), first + (f"{path}.{name}" if path else name))


def add_optimizer(scene: Scene, optimizer: torch.optim.Optimizer) -> None:
    """Enters an optimizer; parameters that no known model holds are named by their group."""
    scene.optimizers.append(optimizer)
    number = len(scene.optimizers) - 1
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            scene.parameter_paths.setdefault(id(parameter), f"optimizer{number}.group{g}.{p}")
