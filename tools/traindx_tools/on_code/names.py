"""One name for each thing, however it was imported."""

from __future__ import annotations

from functools import lru_cache

_PREFIXES = (
    ("pytorch_lightning.", "lightning."),
    ("lightning.pytorch.", "lightning."),
    ("lightning_fabric.", "lightning.fabric."),
    ("lightning.core.module.", "lightning."),
    ("torch.nn.modules.loss.", "torch.nn."),
    ("torch.nn.modules.", "torch.nn."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.cuda.amp.grad_scaler.", "torch.amp."),
    ("torch.cuda.amp.", "torch.amp."),
    ("torch.cpu.amp.", "torch.amp."),
    ("torch.amp.autocast_mode.", "torch.amp."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.optim.adamw.", "torch.optim."),
    ("torch.optim.adam.", "torch.optim."),
    ("torch.optim.sgd.", "torch.optim."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("accelerate.accelerator.", "accelerate."),
    ("transformers.optimization.", "transformers."),
    ("transformers.trainer.", "transformers."),
    ("numpy.random.", "numpy.random."),
    ("flax.linen.", "flax.linen."),
    ("jax.example_libraries.", "jax."),
)
_EXACT = {
    "torch.autocast": "torch.amp.autocast",
    "torch.nn.functional.sigmoid": "torch.sigmoid",
    "torch.special.log_softmax": "torch.log_softmax",
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.autograd.enable_grad": "torch.enable_grad",
    "jax.numpy.where": "jax.numpy.where",
}

DEEP_LEARNING = frozenset(
    {
        "torch",
        "jax",
        "flax",
        "optax",
        "equinox",
        "haiku",
        "lightning",
        "pytorch_lightning",
        "accelerate",
        "transformers",
        "peft",
        "trl",
        "diffusers",
        "deepspeed",
        "torchvision",
        "torchaudio",
        "timm",
        "numpy",
        "tensorflow",
        "keras",
    }
)
"""Top-level packages whose use makes a file worth following."""


@lru_cache(maxsize=20_000)
def canonical(name: str) -> str:
    """The usual public name of a qualified name: "torch.cuda.amp.GradScaler" is "torch.amp.GradScaler"."""
    for prefix, replacement in _PREFIXES:
        if name.startswith(prefix):
            name = replacement + name[len(prefix) :]
            break
    return _EXACT.get(name, name)


def is_array_library(name: str) -> bool:
    """Whether a function of that name makes or maps arrays."""
    return name.startswith(
        ("torch.", "jax.", "numpy.", "einops.", "optax.", "torchvision.", "torchaudio.", "flax.nn.", "flax.linen.")
    )


def is_optimizer(type_name: str) -> bool:
    """Whether an installed package's class is an optimizer, by its home or its name."""
    last = type_name.rpartition(".")[2]
    if "lr_scheduler" in type_name or last in ("Optimizer", "ZeroRedundancyOptimizer"):
        return last == "ZeroRedundancyOptimizer"
    if type_name.startswith(
        ("torch.optim.", "bitsandbytes.optim.", "apex.optimizers.", "torch_optimizer.", "timm.optim.")
    ):
        return last[:1].isupper()
    return last in _OPTIMIZERS


_OPTIMIZERS = frozenset(
    {
        "Adafactor",
        "AdamW",
        "Adam",
        "Lion",
        "FusedAdam",
        "DeepSpeedCPUAdam",
        "Prodigy",
        "DAdaptAdam",
        "LAMB",
        "Lamb",
        "Sophia",
        "SophiaG",
        "AdamW8bit",
        "Adam8bit",
        "PagedAdamW8bit",
        "Muon",
        "AdEMAMix",
        "RAdam",
        "Shampoo",
    }
)

SCHEDULER_FACTORIES = frozenset(
    {
        "get_scheduler",
        "get_linear_schedule_with_warmup",
        "get_cosine_schedule_with_warmup",
        "get_constant_schedule",
        "get_constant_schedule_with_warmup",
        "get_polynomial_decay_schedule_with_warmup",
        "get_cosine_with_hard_restarts_schedule_with_warmup",
        "get_inverse_sqrt_schedule",
        "get_wsd_schedule",
    }
)


def is_scheduler(type_name: str) -> bool:
    """Whether an installed package's class or factory makes a learning-rate scheduler."""
    last = type_name.rpartition(".")[2]
    return "lr_scheduler." in type_name or last in SCHEDULER_FACTORIES
