"""Abstract values: what is known of an expression without running it, and what holds of two of them.

Objects that a program shares by reference (modules, optimizers, lists) are compared by identity; descriptions (tensors,
constants, symbols) are compared by content. What is not known is a `Symbol`, which still has an identity: the same
unknown argument is the same symbol wherever it flows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.on_code.definitions import (
    Bag,
    Function,
    Instance,
    Klass,
    Method,
    ModuleValue,
    Operation,
    Parameters,
    Symbol,
    Table,
    Thing,
    Value,
)
from traindx_tools.on_code.descriptions import Const, Ref, Shape, Site, Tensor

__all__ = ["LAYERS", "NONE", "UNKNOWN", "Bag", "Const", "Function", "Instance", "Klass", "Method", "ModuleValue",
    "Operation", "Parameters", "Ref", "Shape", "Site", "Symbol", "Table", "Tensor", "Thing", "Value", "finite_or_inf",
    "join", "join_tensors", "number", "parts", "truth", "unwrap", "whole"]

NONE = Const(None)
UNKNOWN = Symbol("unknown", "?")
LAYERS = "__layers__"
"""The attribute that holds what a class derived from Sequential was built of."""


def join(left: Value, right: Value) -> Value:
    """What holds of both: the value after an `if` of which either branch may have run."""
    if left is right or (type(left) is type(right) and left == right):
        return left
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Const) and one.value is None and not isinstance(other, (Const, Operation)):
            return other  # `loss = None` and then, under a condition, a loss: whoever uses it has the loss
    if isinstance(left, (Thing, Instance)) and isinstance(right, (Thing, Instance)) and unwrap(left) is unwrap(right):
        return left if left is not unwrap(left) else right  # `if ddp: model = DDP(model)`: the same module
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return join_tensors(left, right)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Tensor) and isinstance(other, Const) and isinstance(other.value, (int, float)):
            return one  # total = 0, then total = total + loss
    if isinstance(left, Bag) and isinstance(right, Bag):
        return _join_bags(left, right)
    numbers = (Const, Operation, Symbol)
    if isinstance(left, numbers) and isinstance(right, numbers) and (_is_number(left) or _is_number(right)):
        depth = (1 + max(v.depth for v in (left, right) if not isinstance(v, Const))
            if not (isinstance(left, Const) and isinstance(right, Const)) else 1)
        return Operation("either", (left, right), depth) if depth <= 12 else UNKNOWN
    return UNKNOWN


def _is_number(value: Value) -> bool:
    return isinstance(value, Operation) or number(value) is not None


def join_tensors(a: Tensor, b: Tensor) -> Tensor:
    """What holds of both tensors, and what either rises or falls with; the graph hangs on it only if on both."""
    detached = frozenset({"maybe_detached"} if (a.grad is False) != (b.grad is False) else ())
    return Tensor(
        kind=a.kind if a.kind == b.kind else "",
        grad=a.grad if a.grad == b.grad else None,
        dtype=a.dtype if a.dtype == b.dtype else None,
        low=None if a.low is None or b.low is None else min(a.low, b.low),
        high=None if a.high is None or b.high is None else max(a.high, b.high),
        site=a.site,
        kind_site=a.kind_site if a.kind == b.kind else None,
        models=a.models | b.models,
        tags=a.tags & b.tags | detached | {t for t in a.tags | b.tags if t[:1] in "+-"},
        parents=a.parents | b.parents | frozenset({b.site} if b.site is not None and b.grad is not False else ()),
        copies=a.copies | b.copies,
        axes=a.axes if a.axes == b.axes else None,
    )


def _join_bags(a: Bag, b: Bag) -> Bag:
    if not a.open and not b.open and len(a.items) == len(b.items):
        return Bag(a.kind, [join(x, y) for x, y in zip(a.items, b.items, strict=False)], site=a.site, born_in=a.born_in)
    return Bag(a.kind, [*a.items, *b.items][:8], open=True, site=a.site, born_in=a.born_in)


_LARGEST = 10**308
"""No float64 is much larger: 1.8e308 (IEEE 754)."""


def finite_or_inf(value: object) -> object:
    """A constant as numbers are reckoned with here: an integer that no float holds is infinite."""
    return math.inf if type(value) is int and value > _LARGEST else value


def number(value: Value | None) -> float | None:
    """The number that a constant holds (a bool is none), else None."""
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
        try:
            return float(value.value)
        except OverflowError:
            return None
    return None


def whole(found: float | None) -> int | None:
    """A number as a count or an index; None where it is no number, or infinite as 1e999 is."""
    return int(found) if found is not None and math.isfinite(found) else None


def truth(value: Value | None) -> bool | None:
    """True or False where the program fixes it, else None."""
    if isinstance(value, Const):
        return bool(value.value) if value.fixed else None
    if isinstance(value, (Function, Klass, ModuleValue, Instance, Thing, Method)):
        return True
    return None


def library_of(value: Value | None) -> str:
    """The name of the class or function of an installed package that made a value, or what it was taken out of."""
    while isinstance(value, Symbol) and value.parent is not None:
        value = value.parent
    if isinstance(value, Thing):
        return value.type
    return value.name if isinstance(value, Symbol) and value.role == "call" else ""


def parts(value: Value) -> Iterator[Value]:
    """The value and everything that it was computed or reached from by name or arithmetic."""
    stack: list[Value] = [value]
    for _ in range(200):
        if not stack:
            return
        one = stack.pop()
        yield one
        if isinstance(one, Operation):
            stack.extend(one.operands)
        elif isinstance(one, Symbol) and one.parent is not None:
            stack.append(one.parent)


def unwrap(value: Value) -> Value:
    """The module inside DistributedDataParallel, DataParallel and similar wrappers."""
    for _ in range(5):
        inner = value.state.get("wraps") if isinstance(value, (Thing, Instance)) else None
        if inner is None:
            break
        value = inner
    return value


def integer(value: Value | None) -> int | None:
    """The int that a constant holds."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None
