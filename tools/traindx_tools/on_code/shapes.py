"""Shapes through the usual operations; None wherever the text does not fix them."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.on_code.values import Bag, Const, Shape, Value

Dims = tuple[int | None, ...]


def literal(value: Value | None) -> int | None:
    """The int that a constant holds."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    return None


def sizes(args: Sequence[Value]) -> list[int | None] | None:
    """Sizes given as `f(2, 3)` or `f((2, 3))`, each None where unknown; None if even their number is unknown."""
    if len(args) == 1 and isinstance(args[0], Bag):
        return None if args[0].open else [literal(v) for v in args[0].items]
    if len(args) == 1 and literal(args[0]) is None:
        return None  # one unknown argument: an int or a whole shape
    return [literal(v) for v in args]


def broadcast(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of an elementwise operation."""
    if left is None or right is None:
        return None
    size = max(len(left.dims), len(right.dims)) if left.exact and right.exact else min(len(left.dims), len(right.dims))
    dims: list[int | None] = []
    for i in range(1, size + 1):
        a = left.dims[-i] if i <= len(left.dims) else 1
        b = right.dims[-i] if i <= len(right.dims) else 1
        dims.insert(0, b if a == 1 else a if b == 1 else a if a == b else None)
    return Shape(tuple(dims), left.exact and right.exact)


def reduced(shape: Shape | None, dim: Value | None, keep: bool) -> Shape | None:
    """The shape after a reduction over `dim` (None: over everything)."""
    if dim is None:
        return Shape(()) if not keep else None
    axes = [literal(dim)] if not isinstance(dim, Bag) else [literal(d) for d in dim.items]
    if shape is None or None in axes:
        return None
    dims: list[int | None] = list(shape.dims)
    for axis in sorted((a for a in axes if a is not None), key=lambda a: a % max(len(dims), 1), reverse=True):
        if not shape.exact and axis >= 0:
            return None
        if not -len(dims) <= axis < len(dims):
            return None
        if keep:
            dims[axis] = 1
        else:
            del dims[axis]
    return Shape(tuple(dims), shape.exact)


def unsqueezed(shape: Shape | None, dim: int | None) -> Shape | None:
    """With one dimension of size 1 more."""
    if shape is None or dim is None or (not shape.exact and dim >= 0):
        return None
    dims = list(shape.dims)
    at = dim if dim >= 0 else len(dims) + 1 + dim
    if not 0 <= at <= len(dims):
        return None
    dims.insert(at, 1)
    return Shape(tuple(dims), shape.exact)


def squeezed(shape: Shape | None, dim: int | None, given: bool) -> Shape | None:
    """Without dimensions of size 1 (all of them, or the one given)."""
    if shape is None:
        return None
    dims = list(shape.dims)
    if not given:
        if not shape.exact or None in dims[1:]:
            return None
        return Shape(tuple(d for i, d in enumerate(dims) if d != 1 or (i == 0 and d is None)))
    if dim is None or (not shape.exact and dim >= 0) or not -len(dims) <= dim < len(dims):
        return None
    if dims[dim] is None:
        return None
    if dims[dim] == 1:
        del dims[dim]
    return Shape(tuple(dims), shape.exact)


def viewed(shape: Shape | None, args: Sequence[Value]) -> Shape | None:
    """After view or reshape: sizes that are -1 or unknown become unknown."""
    wanted = sizes(args)
    if wanted is None:
        return None
    if wanted == [-1] or (len(wanted) == 1 and wanted[0] is not None):
        total = _total(shape)
        return Shape((total if wanted == [-1] else wanted[0],))
    return Shape(tuple(None if d is None or d < 0 else d for d in wanted))


def _total(shape: Shape | None) -> int | None:
    if shape is None or not shape.exact:
        return None
    total = 1
    for d in shape.dims:
        if d is None:
            return None
        total *= d
    return total


def flattened(shape: Shape | None, start: int | None, end: int | None) -> Shape | None:
    """After flatten(start, end)."""
    if start == 0 and end == -1:
        return Shape((_total(shape),))
    if start == 1 and end == -1:
        if shape is not None and shape.exact and len(shape.dims) >= 2:
            rest = _total(Shape(shape.dims[1:]))
            return Shape((shape.dims[0], rest))
        return Shape((None, None))
    return None


def with_last(shape: Shape | None, size: int | None) -> Shape:
    """The same leading dimensions and another last one."""
    if shape is None or not shape.dims:
        return Shape((size,), exact=False)
    return Shape((*shape.dims[:-1], size), shape.exact)


def product(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of a matrix product."""
    if right is None or not right.exact or not right.dims:
        return None
    if left is None:
        return with_last(None, right.dims[-1]) if len(right.dims) == 2 else None
    if len(right.dims) == 1:
        return Shape(left.dims[:-1], left.exact) if left.dims else None
    if left.exact and len(left.dims) == 1:
        return Shape((*right.dims[:-2], right.dims[-1]))
    return with_last(left, right.dims[-1])
