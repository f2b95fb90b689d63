"""Low-rank adapters (LoRA): the two matrices of each, and what the configuration beside them says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traindx_tools.on_weights.tensor import Tensor

_PAIR = (("lora_A", "lora_B"), ("lora_a", "lora_b"), ("lora_down", "lora_up"))
_MOST_CONFIG = 2**20
_NUMBER = re.compile(r"\d+")


def pairs(tensors: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """The two matrices of each adapter, (rank, in) and (out, rank), by the name of its module."""
    found = {}
    for name, one in tensors.items():
        for first, second in _PAIR:
            if f".{first}" in name:
                other = tensors.get(name.replace(f".{first}", f".{second}"))
                if other is not None and len(one.shape) == 2 == len(other.shape) and one.shape[0] == other.shape[1]:
                    found[name.partition(f".{first}")[0]] = (one, other)
    return found


def configuration_of(path: str) -> Mapping[str, Any]:
    """`adapter_config.json` beside a file or in a folder; {} where there is none that can be read."""
    home = Path(path) if Path(path).is_dir() else Path(path).parent
    try:
        text = (home / "adapter_config.json").read_text("utf-8")[:_MOST_CONFIG]
        config = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def layer_of(module: str) -> int | None:
    """The number of a module's layer: the first in its name, None without one."""
    found = _NUMBER.search(module)
    return int(found[0]) if found else None


def kind_of(module: str) -> str:
    """The name with `*` for its layer's number: equal for the same module of each layer."""
    return _NUMBER.sub("*", module, count=1)
