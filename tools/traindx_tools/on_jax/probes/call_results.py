"""What a call of a compiled function was given and gave back: gradients among it, arrays, single numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.probe import Call

LOSSES = ("loss", "cost", "nll", "objective", "elbo")
"""What a loss is called, in small letters, in part."""


def gradient_places(call: Call) -> list[int]:
    """The output leaves that have, together, the types of one argument's leaves, all of them numbers."""
    import jax

    flat = jax.tree_util.tree_leaves
    given = [[(x.shape, x.dtype) for x in flat(a)] for a in (*call.args, *call.kwargs.values())
             if flat(a) and all(is_inexact(x) and hasattr(x, "shape") for x in flat(a))]
    output = call.output
    parts = list(output) if isinstance(output, (tuple, list)) else (
        [output[k] for k in sorted(output)] if type(output) is dict else [])
    found: list[int] = []
    start = 0
    for part in [*parts, output]:
        leaves = flat(part)
        start = 0 if part is output else start
        if [(getattr(x, "shape", None), getattr(x, "dtype", None)) for x in leaves] in given:
            found += range(start, start + len(leaves))
        start += len(leaves)
    return found


def leaves_of(call: Call) -> list[Any]:
    """The arrays of what a call gave back, flattened once."""
    if not call.leaves:
        import jax

        call.leaves = jax.tree_util.tree_leaves(call.output)
    return call.leaves


def has_arrived(array: Any) -> bool:
    """Whether an array can be read without waiting for the device, or never again."""
    return bool(array.is_deleted() or array.is_ready())


def single_number(array: Any) -> float | None:
    """The value of an array of one element, None of one that was deleted."""
    if array is None or array.is_deleted():
        return None
    return float(np.asarray(array).real)


def reader(output: Any, index: int) -> Callable[[Any], Any] | None:
    """What takes the leaf with this number out of outputs of this structure; None where its path has no plain steps."""
    import jax

    path = jax.tree_util.tree_flatten_with_path(output)[0][index][0]
    steps: list[tuple[bool, Any]] = []
    for part in path:
        name = type(part).__name__
        if name not in ("SequenceKey", "DictKey", "GetAttrKey"):
            return None
        steps.append((name == "GetAttrKey", getattr(part, {"SequenceKey": "idx", "DictKey": "key"}.get(name, "name"))))

    def take(value: Any) -> Any:
        for attribute, key in steps:
            value = getattr(value, key) if attribute else value[key]
        return value

    return take


def is_called_loss(name: str) -> bool:
    """Whether a function or an output is called as a loss is."""
    return any(word in name.lower() for word in LOSSES)
