"""The axes of arrays, also of those that come from outside: how many there are, what each is as long as.

Where no number is known a length is a text: `x` and `y[i]` with the same `i` are as long as each other whatever they
hold. What nobody counted is a `Rest`; from in front and from behind axes are taken out of it as the program names them.
Where two readings are possible there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.on_code.descriptions import Axes, Axis, Rest, Whole
from traindx_tools.on_code.values import NONE, Bag, Const, Operation, Symbol, Tensor, Thing, Value, parts

INSERTED = Axis(1, "inserted")
SCALAR = Axes(())
_DEEP = 8
_NUMBERS = frozenset({"index", "size", "key", "text", "loss scale", "count"})
"""Roles of symbols that are single numbers or texts."""
_ARRAYS = frozenset({"parameter", "item", "iteration", "call", "attribute", "output", "detached output", "global"})
_OF_NUMBERS = frozenset({"round", "//", "%"})
"""Arithmetic of Python's own, with one number as its result: `dim ** -0.5` besides."""
_ARITHMETIC = frozenset({"+", "-", "*", "/", "**", "compare"})


def text(value: Value | None, left: int = _DEEP) -> str:
    """What a value is called, the same text for the same value; "" where it has no name of its own."""
    if isinstance(value, Const):
        return repr(value.value)[:40]
    if isinstance(value, Symbol) and left:
        if value.role == "size" and value.axes is not None:
            return str(getattr(value.axes.dims[0], "size", ""))
        above = text(value.parent, left - 1) if value.parent is not None else ""
        known = above or value.role in ("parameter", "global") or "@" in value.name or ":" in value.name
        return f"{above}.{value.role[:1]}{value.name}" if known else ""
    if isinstance(value, Operation) and left:
        inner = [text(o, left - 1) for o in value.operands]
        return f"{value.op}({','.join(inner)})" if all(inner) else ""
    if isinstance(value, Tensor):
        return f"{value.site}{hash(value.axes)}" if value.site is not None and value.axes is not None else ""
    return f"{type(value).__name__}{id(value)}" if isinstance(value, (Bag, Thing)) else ""


def of(value: Value | None, left: int = _DEEP) -> Axes | None:
    """The axes of any value; no axes for a number."""
    if isinstance(value, Tensor):
        return value.axes
    if isinstance(value, Symbol):
        above = value.parent if isinstance(value.parent, Symbol) else None
        if isinstance(value.parent, Thing) and value.parent.type.startswith("transformers."):
            return None  # several arrays: `axes` are those of the input
        if value.role in _NUMBERS or (above is not None and "shape" in (above.role, above.name)):
            return SCALAR
        name = text(value) if value.role in _ARRAYS and value.axes is None else ""
        if above is not None and name and (above.role, above.name, value.role) == ("iteration", "batch", "item"):
            return Axes((Axis(f"rows of {text(above)}", "batch"), Rest(name, 1)))
        return value.axes or (Axes((Rest(name),)) if name else None)
    if isinstance(value, Thing) and value.short == "Parameter" and value.args:
        return of(value.args[0], left - 1)
    if isinstance(value, Const):
        return SCALAR if isinstance(value.value, (int, float)) else None
    if isinstance(value, Operation) and left:
        low = value.operands[-1]
        if value.op.startswith("len") or value.op in _OF_NUMBERS or value.op.startswith("math.") or (
                value.op == "**" and isinstance(low, Const) and isinstance(low.value, float) and low.value < 0):
            return SCALAR
        sides = [of(o, left - 1) for o in value.operands]
        if value.op in _ARITHMETIC and len(sides) == 2:
            return broadcast(*sides)
        return sides[0] if len(sides) == 1 else None
    if isinstance(value, Bag) and left and value.kind in ("list", "tuple"):
        return _of_list(value, left)
    return None


def _of_list(value: Bag, left: int) -> Axes | None:
    """A list of equal parts as an array."""
    if not value.items or (isinstance(value.items[0], (Const,)) and not isinstance(value.items[0].value, (int, float))):
        return None
    first = value.items[0]
    scaled = isinstance(first, Operation) and first.op in _ARITHMETIC  # what is reckoned with in a list is a number
    inner = SCALAR if scaled and not isinstance(of(first, left - 1), Tensor) else of(first, left - 1)
    if inner is None:
        return None
    count = Axis(len(value.items)) if not value.open else length(value.size) if value.size is not None else Axis()
    of_what = value.size.operands[0] if isinstance(value.size, Operation) and value.size.op == "len" else None
    counter = of_what.parent if isinstance(of_what, Symbol) else None
    kinds = (isinstance(counter, Thing) and counter.short == "Counter") or any(
        isinstance(p, Symbol) and (p.role, p.name) == ("count", "by number") for p in parts(first))
    return Axes((Axis(count.size, "classes") if kinds and value.open else count, *inner.dims))


def length(value: Value | None) -> Axis:
    """The number that a value is, as the length of an axis."""
    if isinstance(value, Const) and type(value.value) is int:
        return Axis(value.value)
    if isinstance(value, Symbol):
        if value.role == "size" and value.axes is not None and isinstance(value.axes.dims[0], Axis):
            return value.axes.dims[0]
        above = value.parent
        listed = isinstance(above, Symbol) and (above.role == "shape" or above.name == "shape")
        if listed and value.role == "item" and isinstance(above, Symbol):
            known = above.axes if above.role == "shape" else of(above.parent)
            return at(known, int(value.name)) if value.name.lstrip("-").isdigit() else Axis()
    if isinstance(value, Operation) and value.op == "len":
        counted = value.operands[0]
        found = at(of(counted), 0)
        return found if found.size != "" else Axis(text(value), "batch")
    return Axis(text(value))


def sizes(args: Sequence[Value]) -> list[Axis] | None:
    """Sizes given as `f(2, n)` or `f((2, n))`."""
    if len(args) == 1 and isinstance(args[0], Bag):
        return None if args[0].open else [length(v) for v in args[0].items]
    if len(args) == 1 and isinstance(args[0], Symbol) and (args[0].role == "shape" or args[0].name == "shape"):
        return None
    return [length(v) for v in args]


def place(axes: Axes | None, axis: int | None) -> tuple[list[Axis | Rest], int] | None:
    """The axes with the wanted one taken out of what nobody counted, and where it stands."""
    if axes is None or axis is None or abs(axis) > _DEEP:
        return None
    dims = list(axes.dims)
    rest = next((i for i, d in enumerate(dims) if isinstance(d, Rest)), None)
    if rest is None:
        return (dims, axis % len(dims)) if -len(dims) <= axis < len(dims) else None
    one = dims[rest]
    while isinstance(one, Rest) and axis >= rest >= 0:
        dims.insert(rest, Axis(f"{one.of}.{one.front}"))
        rest, one = rest + 1, one._replace(front=one.front + 1)
        dims[rest] = one
    while isinstance(one, Rest) and axis < 0 and -axis > len(dims) - rest - 1:
        dims.insert(rest + 1, Axis(f"{one.of}.-{one.back + 1}"))
        one = one._replace(back=one.back + 1)
        dims[rest] = one
    return dims, axis if axis >= 0 else len(dims) + axis


def at(axes: Axes | None, axis: int) -> Axis:
    """One axis."""
    found = place(axes, axis)
    one = found[0][found[1]] if found is not None else None
    return one if isinstance(one, Axis) else Axis()


def ranked(axes: Axes | None, rank: int) -> list[Axis] | None:
    """The axes of an array that has so many; None if it has not."""
    if axes is None:
        return None
    while not axes.exact and len(axes.dims) <= rank:
        rest = next(i for i, d in enumerate(axes.dims) if isinstance(d, Rest))
        found = place(axes, rest)
        if found is None:
            return None
        dims = found[0]
        axes = Axes(tuple(dims))
        if len(dims) == rank + 1:
            return [d for d in dims if isinstance(d, Axis)]
    plain = [d for d in axes.dims if isinstance(d, Axis)]
    return plain if len(plain) == rank and (axes.exact or len(axes.dims) == rank + 1) else None


def pair(x: Axis, y: Axis) -> Axis:
    """One axis of an elementwise operation."""
    if x.size == 1 or y.size == 1:
        other = y if x.size == 1 else x
        return x if other.size == 1 and y == INSERTED else other
    first, second = (x, y) if x.role or not y.role else (y, x)
    return first if first.size != "" else Axis(second.size, first.role)


def broadcast(x: Axes | None, y: Axes | None) -> Axes | None:
    """The axes of an elementwise operation."""
    if x is None or y is None:
        return None
    if not y.dims or not x.dims:
        return y if not x.dims else x
    whole = x.whole or y.whole
    if not x.exact or not y.exact:
        return _uncounted(x, y)
    size = max(len(x.dims), len(y.dims))
    left = [INSERTED] * (size - len(x.dims)) + [d for d in x.dims if isinstance(d, Axis)]
    right = [INSERTED] * (size - len(y.dims)) + [d for d in y.dims if isinstance(d, Axis)]
    wide = x if len(x.dims) == size else y
    return Axes(tuple(map(pair, left, right)), whole, wide.frame)


def _uncounted(x: Axes, y: Axes) -> Axes | None:
    if x.dims == y.dims:
        return x
    for one, other in ((x, y), (y, x)):
        if one.exact or not other.exact:
            continue
        tail = next(i for i, d in enumerate(reversed(one.dims)) if isinstance(d, Rest))
        if len(other.dims) <= tail or (len(other.dims) > 1 and other.dims[0] == one.dims[0] and all(
                getattr(d, "size", 0) == 1 for d in other.dims[1:])):
            return one  # at most as many as are known from behind, or one for each sample
        if other.dims[0] == one.dims[0] and len(other.dims) >= len(one.dims) - 1:
            return other  # both begin with the same samples: they have as many axes as each other
        known = [d.size for d in one.dims if isinstance(d, Axis)]
        if len(other.dims) <= len(known) and 1 not in known:
            return one
    if not x.exact and not y.exact and len(x.dims) > 1 and x.dims[0] == y.dims[0] and isinstance(x.dims[0], Axis):
        return Axes((x.dims[0], Rest(f"{x.dims[1:]}{y.dims[1:]}")))
    return None


def clash(x: Axes | None, y: Axes | None) -> Axis | None:
    """The axis of length 1 because of which one side's samples meet all samples of the other; None if all is well.

    The side that is short of an axis has its samples where the other has the 1: (N, 1) against (N,). Where the program
    inserted the missing axis on that side too, all pairs are wanted.
    """
    for one, other in ((x, y), (y, x)):
        if one is None or other is None or not other.exact or not other.dims:
            continue
        tail = next((i for i, d in enumerate(reversed(one.dims)) if isinstance(d, Rest)), len(one.dims))
        size = len(other.dims)
        if tail < size or len(one.dims) <= size:
            continue
        before = {d.size for d in one.dims[:-size] if isinstance(d, Axis)} - {"", 1}
        for here, there in zip(one.dims[-size:], other.dims, strict=True):
            if isinstance(here, Axis) and isinstance(there, Axis) and here.size == 1 and there.size in before:
                return here
    return None


def indexed(base: Axes, index: Value) -> Axes | None:
    """`x[index]`."""
    entries = index.items if isinstance(index, Bag) and index.kind == "tuple" else [index]
    if base.frame:
        return _of_frame(base, entries)
    if any(isinstance(e, Const) and isinstance(e.value, str) for e in entries):
        return None
    cut = next((i for i, e in enumerate(entries) if e == Const(...)), len(entries))
    front, back = entries[:cut], entries[cut + 1:]
    taken = [sum(e != NONE for e in part) for part in (front, back)]
    for axis in ([taken[0] - 1] if taken[0] else []) + ([-taken[1]] if taken[1] else []):
        found = place(base, axis)
        if found is None:
            return None
        base = Axes(tuple(found[0]))
    dims, end = base.dims, len(base.dims) - taken[1]
    starts, ends = _taken(list(dims[:taken[0]]), front), _taken(list(dims[end:]), back)
    if starts is None or ends is None:
        return None
    made = (*starts, *dims[taken[0]:end], *ends)
    return Axes(made) if sum(isinstance(d, Rest) for d in made) < 2 else None


def _taken(dims: list[Axis | Rest], entries: Sequence[Value]) -> list[Axis | Rest] | None:
    made: list[Axis | Rest] = []
    arrays: Axes | None = None
    for entry in entries:
        if entry == NONE:
            made.append(INSERTED)
            continue
        one = dims.pop(0) if dims else None
        if not isinstance(one, Axis):
            return None
        if isinstance(entry, Bag) and entry.kind == "slice":
            made.append(_sliced(one, entry))
            continue
        by = of(entry)
        if by is None or (isinstance(entry, Const) and isinstance(entry.value, bool)):
            return None
        if by.dims and (getattr(entry, "dtype", "") == "bool" or getattr(entry, "op", "") == "compare"):
            if len(by.dims) != 1:
                return None
            by = Axes((Axis(f"{one.size}[{text(entry)}]" if text(entry) else "", one.role),))
        if by.dims:
            if arrays is not None or not made:
                made = list(by.dims if arrays is None else (broadcast(arrays, by) or Axes((Rest(""),))).dims)
            else:
                made.extend(by.dims)
            arrays = by
    return made


def _sliced(one: Axis, entry: Bag) -> Axis:
    if all(e == NONE for e in entry.items):
        return one
    known = [e.value for e in entry.items if isinstance(e, Const) and (e.value is None or type(e.value) is int)]
    if isinstance(one.size, int) and len(known) == 3 and known[2] != 0:
        return one._replace(size=len(range(one.size)[slice(*known)]))
    ends = [text(e) for e in entry.items]
    return one._replace(size=f"{one.size}[{':'.join(ends)}]" if one.size and all(ends) else "")


def _of_frame(base: Axes, entries: Sequence[Value]) -> Axes | None:
    """Rows and columns of a table: by name, by a list of names, by a mask, by slices."""
    rows, key = base.dims[0], entries[-1]
    if isinstance(rows, Rest) or len(base.dims) != 2:
        return None
    if len(entries) == 1 and (isinstance(key, (Tensor, Operation, Symbol)) or getattr(key, "kind", "") == "slice"):
        row = _taken([rows], [key])
        return Axes((*row, *base.dims[1:]), frame=True) if row is not None else None
    row = [rows] if len(entries) == 1 else _taken([rows], entries[:1])
    if row is None:
        return None
    if isinstance(key, Const):
        return Axes(tuple(row))
    if isinstance(key, Bag) and key.kind != "slice":
        names = [k.value for k in key.items if isinstance(k, Const) and isinstance(k.value, str)]
        kinds = {n.rstrip("0123456789_") for n in names}
        role = "columns" if len(kinds) == len(names) > 1 and not key.open else "feature"
        return Axes((*row, Axis(len(key.items) if not key.open else "", role)), frame=True)
    return Axes((*row, Axis("", "feature")), frame=True) if isinstance(key, Bag) else None


def swapped(axes: Axes, one: int, other: int) -> Axes | None:
    """With two axes exchanged; what is whole along one of them moves with it."""
    for axis in (one, other):
        found = place(axes, axis)
        if found is None:
            return None
        axes = Axes(tuple(found[0]), axes.whole, axes.frame)
    dims = list(axes.dims)
    a, b = one % len(dims) if one < 0 else one, other % len(dims) if other < 0 else other
    dims[a], dims[b] = dims[b], dims[a]
    return Axes(tuple(dims), _moved(axes.whole, {one: other, other: one, a: b, b: a}), axes.frame)


def _moved(whole: Whole | None, to: dict[int, int]) -> Whole | None:
    return whole._replace(axis=to.get(whole.axis, whole.axis)) if whole is not None else None


def shape(x: Value) -> Bag | None:
    """`x.shape` of an array whose axes are counted: numbers, and what else they are as long as."""
    axes = of(x)
    if axes is None or not axes.exact:
        return None
    return Bag("tuple", [Const(d.size) if isinstance(d.size, int) else Symbol("size", d.size, axes=Axes((d,)))
                         for d in axes.dims if isinstance(d, Axis)])
