"""In which scale a number says where a process stands: the index of a step, or a share of the way; and where from."""

from __future__ import annotations

from traindx_tools.on_code.descriptions import Const, Tensor
from traindx_tools.on_code.values import Bag, Operation, Symbol, Value, number

INDEX, SHARE = "index of a step", "share of the way"
DRAWN, COUNTED = "drawn", "counted"
SCALES = frozenset({INDEX, SHARE})
ALL = SCALES | {DRAWN, COUNTED}
_MANY = 10
"""A divisor below it makes no share of an index, and a factor below it no index of a share."""


def of(value: Value | None) -> frozenset[str]:
    """The scale of a number or an array, and whether it was drawn or counts a loop; empty where neither is known."""
    if isinstance(value, Tensor):
        return value.tags & ALL if value.tags & SCALES else frozenset()
    if isinstance(value, Bag):
        return of(value.items[0]) if value.items else frozenset()
    if isinstance(value, Symbol):
        return frozenset({INDEX, COUNTED}) if value.role == "index" else frozenset()
    if not isinstance(value, Operation):
        return frozenset()
    if len(value.operands) == 2:
        return combined(value.op, *value.operands)
    return of(value.operands[0]) if value.op == "round" else frozenset()


def combined(op: str, left: Value, right: Value) -> frozenset[str]:
    """The scale of a quotient, a product, a sum or a difference."""
    one, other = of(left), of(right)
    if op in "+-" and one != other and (one | other) >= {INDEX} and not (one and other):
        return one | other
    if op == "/" and INDEX in one and not other and not isinstance(right, Tensor):
        return one - {INDEX} | {SHARE} if (number(right) or _MANY) >= _MANY else frozenset()
    if op != "*" or (one and other):
        return frozenset()
    scale, factor = (one, right) if one else (other, left)
    if isinstance(factor, Tensor):  # `torch.ones(n) * t`
        return scale if factor.low == factor.high == 1.0 else frozenset()
    if SHARE in scale and isinstance(factor, Const):
        return scale - {SHARE} | {INDEX} if (number(factor) or 0.0) >= _MANY else frozenset()
    return frozenset()
