"""Operators over abstract values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import bounds, mask_truth, quantities, time_scales
from traindx_tools.on_code.arrays import AXES, COLUMNS, SIGNS, is_parameter
from traindx_tools.on_code.tensors import lineage, merged
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Operation,
    Parameters,
    Site,
    Symbol,
    Tensor,
    Value,
    integer,
    number,
)

_CONSTANT: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<<": operator.lshift,
    ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor}
_LARGEST = 10**18
"""Constants beyond it are not computed: `9 ** 9 ** 9` must cost nothing."""


def binary(op: str, left: Value, right: Value, site: Site, grad: bool | None) -> Value:
    """`left op right`."""
    if isinstance(left, Const) and isinstance(right, Const):
        return _constants(op, left, right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _arrays(op, left, right, site, grad)
    if op == "+" and isinstance(left, Bag) and isinstance(right, Bag):
        return Bag(left.kind, [*left.items, *right.items][:50], left.open or right.open, left.site, left.born_in)
    if op == "+" and (isinstance(left, Parameters) or isinstance(right, Parameters)):
        return _joined_parameters(left, right)
    if op == "-" and _all_pairs(left, right):
        return Tensor(site=site, tags=frozenset({"pairs"}))
    if op == "*" and isinstance(left, Bag) and isinstance(right, (Const, Operation, Symbol)):
        times = integer(right)
        items = left.items * times if times is not None and 0 <= times * len(left.items) <= 200 else left.items
        return Bag(left.kind, list(items), left.open or items is left.items, left.site, left.born_in)
    return operation(op, (left, right))


def _all_pairs(left: Value, right: Value) -> bool:
    """Whether each row of an array is taken from each: `x[:, None] - x[None, :]`, which is 0 on the diagonal."""
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        axes = {v.name for v in (left, right) if v.role == "item" and v.name.startswith("axis ")}
        return len(axes) == 2 and left.parent is not None and left.parent == right.parent
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or left.site is None or left.site != right.site:
        return False
    here, there = (frozenset(t for t in v.tags if t.startswith("axis ")) for v in (left, right))
    return bool(here and there) and here != there and left.tags - here == right.tags - there


def operation(op: str, operands: tuple[Value, ...]) -> Value:
    """Arithmetic that stays symbolic; beyond 12 levels it is unknown."""
    depth = 1 + max((o.depth for o in operands if isinstance(o, Operation)), default=0)
    return Operation(op, operands, depth) if depth <= 12 else UNKNOWN


def _joined_parameters(left: Value, right: Value) -> Value:
    sides = [s for s in (left, right) if isinstance(s, Parameters)]
    modules = tuple(m for s in sides for m in s.modules)
    certain = len(sides) == 2
    return Parameters(modules, all(s.only_trainable for s in sides), not certain or any(s.partial for s in sides))


def _constants(op: str, left: Const, right: Const) -> Value:
    a, b = left.value, right.value
    text = isinstance(a, (str, bytes)) or isinstance(b, (str, bytes))
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    if not (numbers or (text and op == "+")):
        return operation(op, (left, right))
    if numbers and (abs(a) > _LARGEST or abs(b) > _LARGEST or (op in ("**", "<<") and abs(b) > 64)):
        return operation(op, (left, right))
    try:
        result = _CONSTANT[op](a, b)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return UNKNOWN
    if isinstance(result, complex) or (isinstance(result, str) and len(result) > 10_000):
        return UNKNOWN
    return Const(result, left.fixed and right.fixed)


def unary(op: str, value: Value) -> Value:
    """`-value`, `+value`, `~value`."""
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and op in "+-":
        return Const(-value.value if op == "-" else +value.value, value.fixed)
    if isinstance(value, Tensor):
        if op != "-":
            return replace(value, tags=mask_truth.turned(value.tags)) if op == "~" else value
        keeps = value.kind if value.kind == "linear" else ""
        signed = quantities.turned(value.tags - SIGNS - {"minus"}) | _negated(value.tags)
        return bounds.bounded(replace(value, kind=keeps, tags=signed), bounds.negate(bounds.of(value)))
    return operation(op, (value,))


def _negated(tags: frozenset[str]) -> frozenset[str]:
    if "negated" in tags:
        return frozenset({"loss"})
    if "loss" in tags:
        return frozenset({"negated"})
    return frozenset() if tags & {"minus", "log_prob"} else frozenset({"minus"})


def written_into(base: Tensor, value: Value) -> Tensor:
    """An array of which some elements were set: its bounds hold both."""
    truth = float(value.value) if isinstance(value, Const) and isinstance(value.value, bool) else None
    low, high = (truth, truth) if truth is not None else _bounds_of(value)
    return replace(base, low=None if base.low is None or low is None else min(base.low, low),
                   high=None if base.high is None or high is None else max(base.high, high))


def is_whole(index: Value) -> bool:
    """Whether an index takes each element: `[:]`, `[...]`, `[:, :]`."""
    entries = index.items if isinstance(index, Bag) and index.kind == "tuple" else [index]
    return bool(entries) and all(e == Const(...) or (
        isinstance(e, Bag) and e.kind == "slice" and all(i == Const(None) for i in e.items)) for e in entries)


def _bounds_of(value: Value) -> bounds.Bounds:
    if isinstance(value, Tensor):
        return value.low, value.high
    known = number(value)
    return known, known


def _arrays(op: str, left: Value, right: Value, site: Site, grad: bool | None) -> Tensor:
    tensors = [v for v in (left, right) if isinstance(v, Tensor)]
    result = merged(tensors, site)
    if len(tensors) == 1:
        result = replace(result, parents=lineage(tensors[0])) if result.grad is not False else result
        other = right if tensors[0] is left else left
        if result.grad is False and (isinstance(other, Symbol) or is_parameter(other)):
            result = replace(result, grad=None)
    result = bounds.bounded(result, _interval(op, left, right, result.dtype))
    tags = _tags(left, right, op) | quantities.combined(op, left, right, site) | time_scales.combined(op, left, right)
    result = replace(result, tags=tags, **_kept_kind(op, left, right))
    if op == "*" and any(isinstance(v, Symbol) and v.role == "loss scale" for v in (left, right)):
        result = result.tagged("scaled")
    return replace(result, grad=False, parents=frozenset()) if grad is False else result


def _may_be_array(value: Operation) -> bool:
    return any(isinstance(o, (Symbol, Tensor)) or (isinstance(o, Operation) and _may_be_array(o))
        for o in value.operands)


def _interval(op: str, left: Value, right: Value, dtype: str | None) -> bounds.Bounds:
    a, b = _bounds_of(left), _bounds_of(right)
    if op == "+" and isinstance(left, Tensor) and isinstance(right, Tensor):
        return bounds.add(a, b, dtype)[0], None  # both at their highest may never happen: `x * m + y * (1 - m)`
    if op == "+":
        return bounds.add(a, b, dtype)
    if op == "-":
        return bounds.add(a, bounds.negate(b), dtype)
    if op == "*":
        if left is right or (isinstance(left, Tensor) and left == right):
            return bounds.power(a, 2.0, dtype)
        return bounds.multiply(a, b, dtype)
    if op == "/":
        return bounds.divide(a, b, dtype)
    if op == "**" and isinstance(left, Tensor) and left.low == 0 and is_parameter(right):
        return 0.0, None
    if op == "**" and isinstance(left, Tensor):
        return bounds.power(a, number(right), dtype)
    if op == "@" and isinstance(left, Tensor) and isinstance(right, Tensor) and "unit" in left.tags & right.tags:
        return -1.0, 1.0
    return None, None


def _kept_kind(op: str, left: Value, right: Value) -> dict[str, Any]:
    """A tiny constant added to probabilities leaves them probabilities; scaled logits stay logits."""
    if isinstance(left, Tensor) and op in "+-" and (number(right) or 1.0) <= 1e-3 and abs(number(right) or 1.0) <= 1e-3:
        return {"kind": left.kind, "kind_site": left.kind_site}
    if isinstance(left, Tensor) and op in "*/" and left.kind == "linear" and not isinstance(right, Tensor):
        return {"kind": "linear", "kind_site": left.kind_site}
    rates = [v for v in (left, right) if isinstance(v, Tensor) and v.kind in ("softplus", "exp")]
    if op == "*" and rates and all(v in rates or not isinstance(v, Tensor) or not v.models for v in (left, right)):
        return {"kind": rates[0].kind, "kind_site": rates[0].kind_site}  # a rate for an exposure
    return {}


def _tags(left: Value, right: Value, op: str) -> frozenset[str]:
    return _kept_tags(left, right, op) | (frozenset({"floating"}) if _floating(op, left, right) else frozenset())


def _floating(op: str, left: Value, right: Value) -> bool:
    """Whether the result is certainly of a floating type, whichever one."""
    if op == "/":
        return True
    return any((isinstance(v, Tensor) and ("floating" in v.tags or (v.dtype or "").startswith(("float", "bfloat"))))
        or (isinstance(v, Const) and isinstance(v.value, float)) for v in (left, right))


def _kept_tags(left: Value, right: Value, op: str) -> frozenset[str]:
    tensors = [v for v in (left, right) if isinstance(v, Tensor)]
    if op == "@":
        matrix = right.shape if isinstance(right, Tensor) else None
        return frozenset({"column"} if matrix is not None and matrix.rank == 2 and matrix.dims[1] == 1 else ())
    if op not in "*/+-":
        return tensors[0].tags & {"pairs"} if op == "**" and left is tensors[0] else frozenset()
    if op == "-" and _all_pairs(left, right):
        return frozenset({"pairs"})
    kept = frozenset({"one_row", "reduced", "spread", *({"pairs"} if op in "*/" else ())})
    signs = _signs(left, right, op)
    if len(tensors) == 1:
        return tensors[0].tags & (kept | {*COLUMNS, *AXES}) | signs | _mean_of_batch(left, op)
    both = tensors[0].tags & tensors[1].tags & kept | ((tensors[0].tags | tensors[1].tags) & {"column"})
    axes = (tensors[0].tags | tensors[1].tags) & {"batch_first", "sequence"}
    return both | axes | signs | _mean_of_batch(left, op)


def _mean_of_batch(left: Value, op: str) -> frozenset[str]:
    """A sum over the batch axis stays one when it is divided or weighted."""
    return left.tags & {"batch_reduced"} if isinstance(left, Tensor) and op in "*/" else frozenset()


def _signs(left: Value, right: Value, op: str) -> frozenset[str]:
    """What is left of "a loss", "a negated loss", "a log-probability" after an operation."""
    if op == "-" or (op == "/" and not isinstance(left, Tensor)):
        return frozenset()
    sides = [(v, o) for v, o in ((left, right), (right, left)) if isinstance(v, Tensor) and v.tags & SIGNS]
    if op == "+":
        return frozenset().union(*(v.tags & {"negated"} for v, o in sides if not isinstance(o, Tensor)))
    if len(sides) != 1 or _may_be_negative(sides[0][1]):
        return frozenset()
    value, other = sides[0]
    weight = isinstance(other, (Const, Operation)) or "log_prob" in value.tags
    return value.tags & (SIGNS if weight else frozenset())


def _may_be_negative(value: Value) -> bool:
    """Whether a factor is written with a minus."""
    known = number(value)
    if known is not None:
        return known <= 0
    if isinstance(value, Operation):
        return value.op == "-"
    return isinstance(value, Tensor) and bool(value.tags & {"negated", "minus"})
