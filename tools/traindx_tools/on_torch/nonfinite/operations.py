"""What is known of single operations of ATen: which write constants, which leave memory as it is, which overwrite."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

UNINITIALISED = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"})
"""Give memory with whatever was in it."""

CONSTANT = frozenset({"full", "full_like", "new_full", "fill", "fill_", "masked_fill", "masked_fill_", "scalar_tensor",
                      "constant_pad_nd", "where", "lift_fresh", "lift_fresh_copy", "index_fill", "index_fill_",
                      "clamp", "clamp_", "clamp_min", "clamp_max", "nan_to_num", "scatter", "scatter_"})  # fmt: skip
"""May hold an infinity that a person wrote there on purpose."""

OVERWRITES = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_",
                        "cauchy_", "geometric_", "log_normal_", "set_", "resize_", "detach_"})  # fmt: skip
"""Write every value of their first argument and read none of it."""

SOFTMAX = frozenset({"_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax"})
ATTENTION = ("_scaled_dot_product", "_flash_attention", "_efficient_attention", "scaled_dot_product", "_fused_sdp")
COLLECTIVES = frozenset({"c10d", "_c10d_functional", "c10d_functional", "fsdp", "_dtensor"})
"""Namespaces whose operations move values between ranks: what arrives was not computed here."""


@lru_cache(maxsize=8192)
def base_name(func: Any) -> str:
    """`log` of `aten.log.default`."""
    return str(func._schema.name).rpartition("::")[2]


@lru_cache(maxsize=8192)
def namespace(func: Any) -> str:
    """`aten` of `aten.log.default`."""
    return str(func._schema.name).partition("::")[0]


@lru_cache(maxsize=8192)
def written(func: Any) -> tuple[tuple[int, str, bool], ...]:
    """Position, name and keyword-only of the arguments that the operation writes to."""
    found = enumerate(func._schema.arguments)
    return tuple((i, a.name, a.kwarg_only) for i, a in found if a.alias_info is not None and a.alias_info.is_write)


@lru_cache(maxsize=8192)
def elementwise_lists(func: Any) -> bool:
    """Whether the operation does the same to each element of its lists: `_foreach_*` and `_fused_*`."""
    return base_name(func).startswith(("_foreach_", "_fused_ada", "_fused_sgd", "_fused_adag"))


def is_attention(name: str) -> bool:
    """Whether it is one of the fused attention kernels."""
    return name.startswith(ATTENTION)
