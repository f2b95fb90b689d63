"""Names of installed packages by what a call of them gives."""

from __future__ import annotations

CONTEXTS = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.amp.autocast",
        "torch.set_default_dtype",
        "contextlib.nullcontext",
        "torch.autograd.set_detect_anomaly",
    }
)
NO_ARRAYS = (
    "torch.cuda.",
    "torch.distributed.",
    "torch.backends.",
    "torch.utils.",
    "torch.save",
    "torch.load",
    "torch.manual_seed",
    "torch.set_",
    "torch.get_",
    "torch.device",
    "torch.is_",
    "torch.profiler.",
    "torch.multiprocessing.",
    "torch.jit.",
    "torch.Generator",
    "torch.seed",
    "torch.nn.init.",
    "torch.nn.utils.",
    "torch.autograd.",
    "torch.hub.",
    "torch.ops.",
    "torch._",
    "torch.onnx.",
    "torch.export",
    "torch.overrides",
    "torch.fx.",
    "torch.mps.",
    "torch.xpu.",
    "jax.tree",
    "jax.config",
    "jax.devices",
    "jax.local",
    "jax.process",
    "jax.sharding",
    "jax.profiler",
    "jax.debug",
    "jax.experimental",
    "jax.distributed",
    "numpy.testing",
    "numpy.save",
    "numpy.load",
    "optax.adam",
    "optax.sgd",
    "optax.chain",
    "torchvision.",
    "torchaudio.",
    "numpy.random.seed",
    "jax.dtypes",
    "jax.core",
    "jax.lax.axis",
    "optax.apply",
    "optax.clip",
)
MODEL_FACTORIES = ("torchvision.models.", "timm.create_model", "torch.hub.load")
"""Lower-case functions of installed packages that return a model."""
SQUASHES = frozenset({"softmax", "log_softmax", "sigmoid", "logsigmoid"})
"""Methods that only an array has."""
OPTAX_LOSSES = frozenset(
    {
        "softmax_cross_entropy",
        "softmax_cross_entropy_with_integer_labels",
        "sigmoid_binary_cross_entropy",
        "l2_loss",
        "huber_loss",
        "squared_error",
        "safe_softmax_cross_entropy",
    }
)
