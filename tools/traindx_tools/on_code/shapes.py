"""Whole numbers that the text fixes."""

from __future__ import annotations

from traindx_tools.on_code.values import Const, Value


def literal(value: Value | None) -> int | None:
    """The int that a constant holds."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None
