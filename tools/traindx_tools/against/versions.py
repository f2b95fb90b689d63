"""Versions of packages, drivers and devices as a run's artifacts name them: logs, requirement files, printed tables.

Only text is read, and of each file its first part: a run prints its environment before it trains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

MOST_BYTES = 512_000
"""Of a file that are looked at."""
MOST_FILES = 60

PACKAGES = (
    "torch", "pytorch", "torchvision", "torchaudio", "transformers", "accelerate", "lightning", "pytorch-lightning",
    "deepspeed", "jax", "jaxlib", "flax", "optax", "equinox", "numpy", "scipy", "pandas", "scikit-learn", "cuda",
    "cudnn", "nccl", "triton", "flash-attn", "flash_attn", "xformers", "bitsandbytes", "peft", "trl", "datasets",
    "tokenizers", "safetensors", "tensorflow", "keras", "apex", "megatron-core", "python", "timm", "diffusers", "ray",
    "rocm", "driver", "huggingface-hub", "einops", "orbax-checkpoint", "haiku", "wandb", "tensorboard",
)  # fmt: skip
FRAMEWORKS = frozenset({"torch", "jax", "jaxlib", "cuda", "cudnn", "nccl", "transformers", "accelerate", "lightning",
                        "deepspeed", "flax", "optax", "flash-attn", "device", "driver", "rocm"})  # fmt: skip
"""What changes numbers or training loops; of other packages a version seldom matters."""
_ALIASES = {"pytorch": "torch", "pytorch-lightning": "lightning", "flash_attn": "flash-attn"}

_VERSION = r"v?(\d+\.\d+(?:\.\d+)*(?:[abc]\d*|rc\d+|\.?post\d+|\.?dev\w*)?(?:\+[\w.]+)?)"
_NAMED = re.compile(
    r"(?<![\w./-])(" + "|".join(re.escape(p) for p in sorted(PACKAGES, key=len, reverse=True)) + r")(?![A-Za-z0-9-])"
    r"(?:[ _.]?(?:__)?version(?:__)?|[ ]compiled|[ ]runtime|[ ]used)*['\"]?\s*(?:==|[:=@]|\s|is)\s*['\"]?"
    + _VERSION + r"(?!\w)", re.IGNORECASE)
_PINNED = re.compile(r"^\s*(?:-\s*)?([A-Za-z][\w.-]{1,60})\s*==?\s*" + _VERSION + r"\s*(?:[;#].*|=\S+)?$", re.MULTILINE)
_DEVICE = re.compile(r"\b(NVIDIA [A-Z][\w -]{2,30}?\b(?=[\s,;)'\"|]|$)|Tesla [A-Z]\d+\w*|GeForce [RG]TX? ?\d+\w*|"
                     r"AMD Instinct \w+|TPU v\d\w*)")
_PINNING = re.compile(r"require\w*\.txt|constraints\.txt|environment\.ya?ml|\w*freeze\w*(\.txt)?|\w*pip\w*\.txt"
                      r"|conda\w*\.\w+|versions?\.(txt|json|ya?ml)", re.IGNORECASE)


def versions_in(paths: Iterable[Path]) -> dict[str, str]:
    """Package, driver or device to its version, the first that is named."""
    found: dict[str, str] = {}
    for path in list(paths)[:MOST_FILES]:
        text = _head(path)
        for name, version in _told(text, pinning=_PINNING.fullmatch(path.name) is not None):
            found.setdefault(_ALIASES.get(name, name), version)
    return found


def _told(text: str, *, pinning: bool) -> Iterable[tuple[str, str]]:
    lists = sum(1 for _ in zip(_PINNED.finditer(text), range(5), strict=False)) == 5  # the output of pip freeze
    if pinning or lists:
        yield from ((m[1].lower().replace("_", "-"), m[2]) for m in _PINNED.finditer(text))
    yield from ((m[1].lower(), m[2]) for m in _NAMED.finditer(text))
    device = _DEVICE.search(text)
    if device is not None:
        yield "device", device[1].strip()


def _head(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in raw[:4096] else raw.decode("utf-8", "replace")
