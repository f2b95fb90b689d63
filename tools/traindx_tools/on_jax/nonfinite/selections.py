"""Which of several inputs really gave the values that are not finite, where an operation chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traindx_tools.on_jax.nonfinite.marks import CLEAN, Mark
from traindx_tools.on_jax.nonfinite.values import is_inexact, on_host


def chosen(values: Sequence[Any], marks: Sequence[Mark], output: Any) -> list[Mark]:
    """The marks of a `select_n`: CLEAN for cases whose odd values were not chosen."""
    which = np.asarray(values[0]).astype(np.int64)
    odd = ~np.isfinite(on_host(output))
    return [CLEAN, *(m if bool((odd & np.broadcast_to(which == i, odd.shape)).any()) else CLEAN
                     for i, m in enumerate(marks[1:]))]


def masked_row(values: Sequence[Any]) -> bool:
    """Whether one of the inputs holds a row (along its last axis) of infinities alone, or is such a row's maximum."""
    for value in values:
        if not is_inexact(value):
            continue
        array = on_host(value)
        if array.ndim and array.shape[-1] and bool(np.isneginf(array.real).all(axis=-1).any()):
            return True
    return False
