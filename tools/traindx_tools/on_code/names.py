"""One name for each thing, however it was imported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from traindx_tools.knowledge.tables import table, words

_PREFIXES: Mapping[str, str] = table("names.toml")["prefixes"]
_EXACT: Mapping[str, str] = table("names.toml")["exact"]

DEEP_LEARNING = words("names.toml", "deep_learning")
"""Top-level packages whose use makes a file worth following."""


@lru_cache(maxsize=20_000)
def canonical(name: str) -> str:
    """The usual public name of a qualified name: "torch.cuda.amp.GradScaler" is "torch.amp.GradScaler"."""
    for prefix, replacement in _PREFIXES.items():
        if name.startswith(prefix):
            name = replacement + name[len(prefix) :]
            break
    return _EXACT.get(name, name)


def is_array_library(name: str) -> bool:
    """Whether a function of that name makes or maps arrays."""
    return name.startswith(("torch.", "jax.", "numpy.", "einops.", "optax.", "torchvision.", "torchaudio.", "flax.nn.",
        "flax.linen."))


def is_optimizer(type_name: str) -> bool:
    """Whether an installed package's class is an optimizer, by its home or its name."""
    last = type_name.rpartition(".")[2]
    if "lr_scheduler" in type_name or last in ("Optimizer", "ZeroRedundancyOptimizer"):
        return last == "ZeroRedundancyOptimizer"
    if type_name.startswith(("torch.optim.", "bitsandbytes.optim.", "apex.optimizers.", "torch_optimizer.",
            "timm.optim.")):
        return last[:1].isupper()
    return last in _OPTIMIZERS


_OPTIMIZERS = words("names.toml", "optimizers")

SCHEDULER_FACTORIES = words("names.toml", "scheduler_factories")


def is_scheduler(type_name: str) -> bool:
    """Whether an installed package's class or factory makes a learning-rate scheduler."""
    last = type_name.rpartition(".")[2]
    return "lr_scheduler." in type_name or last in SCHEDULER_FACTORIES
