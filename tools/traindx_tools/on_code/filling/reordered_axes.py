"""Views and reshapes to sizes of the same tensor in another order."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import UNKNOWN, Bag, Const, Operation, Symbol, Tensor, Thing, Value
from traindx_tools.program.uses import AxisMoved

Sizes = Counter[Hashable]
"""A product: its factors with their powers."""
_OPEN = "open"
_SAME = tuple(table("axes.toml")["same"])


def axes_moved(project: Project) -> Iterator[AxisMoved]:
    """Every one that asks for an axis at a place where the elements of others lie before it."""
    events = list(project.calls("view", "reshape"))
    through: dict[Hashable, Value] = {}
    for event in project.calls("__call__", *_SAME) if events else ():
        layer, source = event.receiver, event.args[0] if event.args else None
        if event.method != "__call__":
            source = layer if layer is not None else source
        elif not isinstance(layer, Thing) or layer.short not in ("Linear", "Dense"):
            continue
        if source is not None and event.result is not None and _key(event.result) != _key(source):
            through[_key(event.result)] = source
    for event in events:
        tensor, given = _asked(event)
        whole = _identity(tensor, through) if tensor is not None else None
        sizes = [_size(v) for v in given]
        if whole is None or len(sizes) < 3 or isinstance(syntax(event.file).parent(event.node), ast.Subscript):
            continue  # what is cut at once may be shifted on purpose
        found = _moved(_axes(tensor, whole, sizes), sizes)
        if found is not None:
            yield AxisMoved(spot_of(event), event.file.segment(event.node), *found)


def _asked(event: Event) -> tuple[Value | None, list[Value]]:
    """The tensor, and the sizes that it is to have."""
    tensor, given = event.receiver, list(event.args)
    if tensor is None and given:
        tensor, given = given[0], given[1:]
    if len(given) == 1 and isinstance(given[0], Bag) and not given[0].open:
        given = list(given[0].items)
    return tensor, given


def _key(value: Value) -> Hashable | None:
    if isinstance(value, Tensor):
        return str(value.site) if value.site is not None and "moved" not in value.tags else None
    return value if isinstance(value, Symbol) and value != UNKNOWN else None


def _identity(value: Value, through: dict[Hashable, Value], left: int = 8) -> Hashable | None:
    """What the sizes of a tensor are known by, through what leaves all axes, or all but the last, as they are."""
    key = _key(value)
    source = through.get(key) if left and key is not None else None
    return _identity(source, through, left - 1) if source is not None else key


def _axis(value: Value) -> tuple[Hashable, int] | None:
    """The tensor and the axis whose size a value is."""
    if not isinstance(value, Symbol) or value.role != "item" or not value.name.isdigit():
        return None
    shape = value.parent
    if not isinstance(shape, Symbol):
        return None
    if shape.role == "shape":
        return shape.name, int(value.name)
    return (shape.parent, int(value.name)) if shape.name == "shape" and shape.parent is not None else None


def _size(value: Value) -> Sizes | None:
    if isinstance(value, Const):
        known = value.value
        is_whole = isinstance(known, int) and not isinstance(known, bool)
        return None if not is_whole else Counter({_OPEN: 1}) if known == -1 else _primes(known)
    if isinstance(value, Operation) and value.op in ("*", "//", "/") and len(value.operands) == 2:
        one, other = _size(value.operands[0]), _size(value.operands[1])
        return None if one is None or other is None else _times(one, other, 1 if value.op == "*" else -1)
    return Counter({_axis(value) or value: 1}) if isinstance(value, Symbol) and value != UNKNOWN else None


def _primes(number: int) -> Sizes:
    """A number by its prime factors; 97 and up are not taken apart further."""
    found: Sizes = Counter()
    for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89):
        while number > 1 and number % prime == 0:
            found[prime] += 1
            number //= prime
    if number > 1:
        found[number] += 1
    return found


def _times(one: Sizes, other: Sizes, power: int = 1) -> Sizes:
    made = Counter(one)
    for name, count in other.items():
        made[name] += power * count
    return Counter({k: v for k, v in made.items() if v})


def _product(sizes: Iterable[Sizes | None]) -> Sizes:
    made: Sizes = Counter()
    for size in sizes:
        made = _times(made, size or Counter())
    return made


def _axes(tensor: Value | None, whole: Hashable, sizes: list[Sizes | None]) -> list[Sizes]:
    """The sizes of a tensor in memory: numbers where they are known, else as many names as are asked for."""
    shape = tensor.shape if isinstance(tensor, Tensor) else None
    if shape is not None and shape.exact and None not in shape.dims:
        known = [_primes(d) for d in shape.dims if d is not None]
        return known if _product(known) == _product(sizes) else []
    named = [n[1] for s in sizes for n in s or () if isinstance(n, tuple) and n[0] == whole]
    return [Counter({(whole, i): 1}) for i in range(max(named, default=-1) + 1)]


def _moved(before: list[Sizes], after: list[Sizes | None]) -> tuple[int, int] | None:
    """An axis, and where it is asked for, with more or with less before it than in memory."""
    if any(s is None or _OPEN in s for s in after):
        return None
    for place, size in enumerate(after):
        if size and before.count(size) == 1 and after.count(size) == 1:
            axis = before.index(size)
            ratio = _times(_product(after[:place]), _product(before[:axis]), -1)
            if ratio and (min(ratio.values()) > 0 or max(ratio.values()) < 0):
                return axis, place
    return None
