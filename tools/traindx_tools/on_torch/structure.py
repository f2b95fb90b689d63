"""What a model is made of once its wrappers are off: the module a person wrote, and the paths of its parts."""

from __future__ import annotations

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


def add_model(scene: Scene, model: torch.nn.Module) -> None:
    """Enters a model and the paths of its modules and parameters; those of a second model start with its class."""
    first = "" if not scene.models else f"{type(model).__name__}."
    scene.models.append(model)
    for path, module in model.named_modules():
        scene.module_paths.setdefault(id(module), f"{first}{path}".rstrip(".") or type(model).__name__)
    for path, parameter in model.named_parameters():
        scene.parameter_paths.setdefault(id(parameter), first + path)


def add_optimizer(scene: Scene, optimizer: torch.optim.Optimizer) -> None:
    """Enters an optimizer; parameters that no known model holds are named by their group."""
    scene.optimizers.append(optimizer)
    number = len(scene.optimizers) - 1
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            scene.parameter_paths.setdefault(id(parameter), f"optimizer{number}.group{g}.{p}")
