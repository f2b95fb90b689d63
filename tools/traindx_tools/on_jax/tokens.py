"""What tells a Python value again later: plain values themselves, of arrays a reference, a digest and a text."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.state import reference

MOST_LEAVES, MOST_ELEMENTS = 64, 2**20
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def token(value: Any, keep: bool) -> Any:
    """What tells a value again: plain values themselves, of arrays a reference, a digest and a text.

    None stands for what cannot be compared: it never counts as changed. `keep`: for later, without the arrays.
    """
    import jax

    if isinstance(value, PLAIN):
        return ("plain", value)
    leaves, structure = jax.tree_util.tree_flatten(value)
    if not leaves or len(leaves) > MOST_LEAVES or not all(_comparable(x) for x in leaves):
        return None
    return ("tree", str(structure), [_Array(x, keep) if hasattr(x, "shape") else x for x in leaves])


class _Array:
    """An array as it was. Jax's own do not change, so that the same object is the same value; numpy's may."""

    def __init__(self, array: Any, keep: bool) -> None:
        self._changes = isinstance(array, np.ndarray)
        self._reference = reference(array)
        self._array = None if keep else array
        self._digest = _digest(array) if keep else None
        self.text = "another array" if array.size != 1 or _gone(array) else repr(np.asarray(array).item())[:60]

    def same(self, now: _Array) -> bool:
        """Whether a later value is this one; also where that cannot be told."""
        if not self._changes and self._reference is not None and self._reference() is now._array:
            return True
        digest = _digest(now._array)
        return self._digest is None or digest is None or self._digest == digest


def _digest(array: Any) -> bytes | None:
    if array.size > MOST_ELEMENTS or not isinstance(array.dtype, np.dtype) or _gone(array):
        return None
    return hashlib.blake2b(np.ascontiguousarray(np.asarray(array)).tobytes(), digest_size=16).digest()


def _gone(array: Any) -> bool:
    return bool(getattr(array, "is_deleted", bool)()) or not getattr(array, "is_fully_addressable", True)


def _comparable(leaf: Any) -> bool:
    if isinstance(leaf, PLAIN):
        return True
    return (hasattr(leaf, "shape") and isinstance(getattr(leaf, "dtype", None), np.dtype)
            and not internals.is_tracer(leaf))


def same(then: Any, now: Any) -> bool:
    if then is None or now is None:
        return True
    if then[0] != now[0] or then[1] != now[1]:
        return bool(then[0] == now[0] == "plain" and then[1] != then[1] and now[1] != now[1])  # NaN is no change
    return then[0] == "plain" or all(
        a.same(b) if isinstance(a, _Array) and isinstance(b, _Array) else a == b
        for a, b in zip(then[2], now[2], strict=True))


def text(token: Any) -> str:
    if token[0] == "plain":
        return repr(token[1])[:60]
    if len(token[2]) > 1:
        return f"{len(token[2])} other arrays"
    return token[2][0].text if isinstance(token[2][0], _Array) else repr(token[2][0])[:60]
