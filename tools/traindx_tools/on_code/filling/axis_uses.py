"""Over which axis of a value an operation runs, what stands there, and views that ask for axes in another order."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code import axes
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import UNKNOWN, Bag, Const, Operation, Site, Symbol, Tensor, Thing, Value, integer
from traindx_tools.program.entities import LossCall
from traindx_tools.program.uses import AxisMoved, AxisUse

_FEW = 40
"""Weights up to this many, written out for a sampler of len(data) draws, are those of classes."""
_LAYERS = {"Softmax": "softmax", "LogSoftmax": "log_softmax"}


def axis_uses(project: Project, losses: list[LossCall]) -> Iterator[AxisUse]:
    """Every softmax of which the axis is known, and every linear layer that reads a mean or sum over the samples."""
    logged = {x.kind_site for e in project.calls("log") for x in (e.receiver, *e.args) if isinstance(x, Tensor)}
    in_losses = {(a.made.file, a.made.line) for c in losses for a in c.arguments.values() if a.made is not None}
    for event in project.calls("softmax", "log_softmax", "__call__"):
        layer = event.receiver
        called = isinstance(layer, Thing) and event.method == "__call__"
        if called and isinstance(layer, Thing) and layer.type == "torch.nn.Linear":
            yield from _pooled(event, project)
        elif event.method != "__call__" or (isinstance(layer, Thing) and layer.short in _LAYERS):
            yield from _normalised(event, in_losses, logged)
    for event in project.events:
        if event.kind == "whole":
            yield _elsewhere(event, project)
    sampled = [e.result.kwargs.get("sampler") for e in project.calls("DataLoader") if isinstance(e.result, Thing)]
    for event in project.calls("WeightedRandomSampler"):
        weights, count = event.argument(0, "weights"), event.argument(1, "num_samples")
        one = axes.at(axes.of(weights), 0)
        few = isinstance(one.size, int) and 1 < one.size <= _FEW and isinstance(count, Operation) and count.op == "len"
        if any(s is event.result for s in sampled) and (one.role == "classes" or few):
            yield AxisUse("sampler", event.spot, event.text, 0, "classes", origin=event)


def _elsewhere(event: Event, project: Project) -> AxisUse:
    """What is whole along one axis and asked along another."""
    x, at = event.args[0], integer(event.args[1]) or 0
    form = x.axes if isinstance(x, (Tensor, Symbol)) else None
    done = form.whole if form is not None and event.name not in ("columns", "samples") else None
    where = event.spot if done is None or done.site is None else project.spot(done.site)
    by = event.name if done is not None else event.receiver.short if isinstance(event.receiver, Thing) else event.method
    role = event.name if done is None else "elsewhere"
    return AxisUse(done.by if done is not None else "standardised", where, event.text,
                   done.axis if done is not None else at, role, None, at, asked=by, shape=str(form or ""), origin=event)


def _normalised(event: Event, in_losses: set[tuple[str, int]], logged: set[Site | None]) -> Iterator[AxisUse]:
    layer = event.receiver
    own = isinstance(layer, Tensor)
    x = layer if isinstance(layer, Tensor) else event.args[0] if event.args else None
    if isinstance(layer, Thing) and layer.short in _LAYERS:
        name, dim = _LAYERS[layer.short], layer.argument(0, "dim")
    else:
        name, dim = event.method, event.argument(0 if own else 1, "dim") or event.kwargs.get("axis")
    if isinstance(event.result, Tensor) and event.result.kind_site in logged and event.result.kind_site is not None:
        name = "log_softmax"
    by_default = dim is None and event.name.startswith(("jax.", "flax."))
    axis = -1 if by_default else integer(dim)
    if not isinstance(x, Tensor) or axis is None:
        return
    dims = x.shape.dims if x.shape is not None else ()
    role, size = _role(x, axis), None
    counted = x.axes.dims if x.axes is not None and x.axes.exact else ()
    if not role and len(counted) == 2 and axis == 0 and getattr(counted[0], "role", "") == "batch" and (
            getattr(counted[1], "role", "") == "feature") and getattr(counted[1], "size", 1) not in (1, ""):
        last = getattr(counted[1], "size", 0)
        yield AxisUse(name, event.spot, event.text, axis, "batch", None,
                      last if isinstance(last, int) else 2, origin=event)
        return
    if role == "features":
        size = dims[-1] if dims else None
    yield AxisUse(name, event.spot, event.text, axis, role, size, dims[-1] if dims else None,
                  "sequence" in x.tags, (event.file.path, event.line) in in_losses,
                  "layer" in x.tags or x.kind == "linear", origin=event)


def _role(x: Tensor, axis: int) -> str:
    rank = x.shape.rank if x.shape is not None else None
    if axis == -1 or (rank is not None and axis == rank - 1):
        return "features"
    first = next((a for a in ("batch_first", "time_first") if a in x.tags), "")
    names = ("time", "batch") if first == "time_first" else ("batch", "time")
    if axis == 0:
        return "batch" if not first and rank == 2 and x.shape and x.shape.dims[0] != 1 else names[0] if first else ""
    return names[1] if first and "sequence" in x.tags and axis in (1, -2) else ""


def _pooled(event: Event, project: Project) -> Iterator[AxisUse]:
    """A sum or mean over the samples, inside a forward pass, that a linear layer reads."""
    x, info = event.args[0] if event.args else None, event.function
    inside = info is not None and info.owner is not None and info.owner.is_module
    if inside and isinstance(x, Tensor) and "batch_reduced" in x.tags and x.grad is not False:
        site = x.site if x.site is not None else Site(event.file.path, event.line)
        yield AxisUse("pooled", project.spot(site), "Linear", 0, "batch", origin=event)


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
            yield AxisMoved(event.spot, event.text, *found)


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


def _axis_of_size(value: Value) -> tuple[Hashable, int] | None:
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
    return Counter({_axis_of_size(value) or value: 1}) if isinstance(value, Symbol) and value != UNKNOWN else None


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
