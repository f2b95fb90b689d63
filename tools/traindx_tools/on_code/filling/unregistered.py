"""What a module needs to learn and does not register: plain lists of layers, objects that hold some, tensors, closures,
layers that are made in each pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.filling.ownership import short
from traindx_tools.on_code.layers import LEARNS, with_parameters
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Bag, Function, Instance, Operation, Symbol, Table, Tensor, Thing, Value, parts
from traindx_tools.program.entities import Collection

_REGISTER = ("add_module", "register_module", "register_parameter", "register_buffer", "setattr", "ModuleList",
             "ModuleDict", "Sequential", "ParameterList", "ParameterDict")  # fmt: skip
_MODULES = ("nn.Module", "LightningModule", "PreTrainedModel")
_OTHER_MODULES = ("flax", "equinox")


def collected(project: Project) -> Iterator[Collection]:
    """Every container of layers that becomes an attribute of a module and stays one."""
    for event in project.events:
        owner, layers = event.receiver, event.args[0] if event.args else None
        if event.kind != "store" or not event.name.startswith("attribute.") or not isinstance(layers, (Bag, Table)):
            continue
        if not isinstance(owner, Instance) or not owner.klass.info.is_module or not is_torch(owner):
            continue
        name = event.name.partition(".")[2]
        inside = flat(layers)
        alone = isinstance(layers, Bag) and not layers.open and len(layers.items) < 2
        if alone or not inside or not all(is_layer(v) for v in inside) or owner.attrs.get(name) is not layers:
            continue
        kept = any(id(v) in registered_in(project) for v in inside)
        yield Collection(name, event.spot, short(inside[0]), kept, event)


@kept
def registered_in(project: Project) -> set[int]:
    """The identities of what anything registers, by a call or as an attribute of its own; found once."""
    calls = {id(v) for e in project.calls(*_REGISTER) for a in (*e.args, *e.kwargs.values()) for v in flat(a)}
    return calls | {id(m) for owner in project.instances if owner.klass.info.is_module for a in owner.attrs.values()
                    if not isinstance(a, (Bag, Table)) for m in submodules(a)}


def is_torch(owner: Instance) -> bool:
    """Whether it is a module of torch."""
    return any(b.endswith(_MODULES) and not any(o in b for o in _OTHER_MODULES) for b in owner.klass.info.foreign_bases)


def flat(value: Value) -> list[Value]:
    """The value, or what stands in it."""
    if isinstance(value, Bag):
        return [v for i in value.items for v in (flat(i) if isinstance(i, (Bag, Table)) else [i])]
    if isinstance(value, Table):
        return [*value.items.values(), *([value.rest] if value.rest else [])]
    return [value]


def is_layer(value: Value) -> bool:
    """Whether it has weights."""
    if isinstance(value, Thing):
        return value.type.startswith("torch.nn.") and with_parameters(value.short)
    inside = [p for p in submodules(value) if p is not value] if isinstance(value, Instance) else []
    return any(isinstance(p, Thing) and with_parameters(p.short) for p in inside) or _has_own_parameters(value)


def _has_own_parameters(value: Value) -> bool:
    stored = [v for p in submodules(value) if isinstance(p, Instance) for v in p.attrs.values()]
    return any(isinstance(v, Thing) and v.short == "Parameter" for v in stored)


def made_in(value: Value, event: Event) -> bool:
    """Whether a layer is made by the method that keeps it: one that came from elsewhere may be registered there."""
    node = event.function.node if event.function else None
    if node is None or not isinstance(value, (Thing, Instance)) or value.site.path != event.file.path:
        return False
    return node.lineno <= value.site.line <= (node.end_lineno or node.lineno)


_DRAWS = ("normal", "uniform", "truncated_normal")
_PASSES = ("forward", "__call__")
_RESHAPES = frozenset({"clone", "view", "reshape", "mul", "div", "add", "transpose", "permute", "unsqueeze", "expand",
                       "repeat", "t", "flatten", "squeeze", "normal", "contiguous"})
_ARITHMETIC = frozenset({"*", "/", "+", "-", "@", "**"})
_NEUTRAL: dict[tuple[float, type[ast.operator]], str] = {
    (1.0, ast.Mult): "ones", (0.0, ast.Add): "zeros", (0.0, ast.Sub): "zeros"}


def unregistered(project: Project) -> Iterator[Collection]:
    """Each of them, once."""
    for event in project.events:
        owner, value = event.receiver, event.args[0] if event.args else None
        if event.kind == "store" and event.name.startswith("attribute.") and isinstance(owner, Instance) and (
                value is not None and owner.klass.info.is_module and owner.attrs.get(event.method) is value):
            if is_torch(owner) and isinstance(value, Instance):
                yield from _object(project, event, owner, value)
            elif isinstance(value, Function):
                yield from _closure(project, event, owner, value)
            elif event.function is not None and event.function.name in ("__init__", "setup"):
                yield from _tensor(project, event, owner, value)
    yield from _made_in_passes(project)


def _object(project: Project, event: Event, owner: Instance, value: Instance) -> Iterator[Collection]:
    """An object of a class that is no module, and that makes layers for itself."""
    info = value.klass.info
    plain = not info.is_module and info.foreign_bases <= {"builtins.object"} and info.method("parameters") is None
    if not plain or not made_in(value, event):
        return
    inside = [v for a in value.attrs.values() for v in flat(a) if is_layer(v)]
    first, last = info.node.lineno, info.node.end_lineno or info.node.lineno
    own = all(isinstance(v, (Thing, Instance)) and v.site.path == info.file.path and first <= v.site.line <= last
              for v in inside)
    others = {id(m) for n, a in owner.attrs.items() if a is not value for m in submodules(a)}
    if inside and own and not any(id(v) in others | registered_in(project) for v in inside):
        yield Collection(event.method, event.spot, short(inside[0]), False, event, f"object of {info.name}")


def _closure(project: Project, event: Event, owner: Instance, value: Function) -> Iterator[Collection]:
    """A function that keeps layers, or an array that was drawn at random, which the module itself does not hold."""
    inside = {**(value.closure or {}), **{k: v for outer in value.closures for k, v in outer.items()}}
    names = {n.id for n in below(value.info.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    others = {id(m) for a in owner.attrs.values() for m in (*submodules(a), *flat(a))} | registered_in(project)
    drawn = {e.site for e in project.calls(*_DRAWS) if e.name.startswith("jax.random.")}
    for held in (inside[n] for n in names & inside.keys() if id(inside[n]) not in others):
        if isinstance(held, Tensor) and any("equinox" in b for b in owner.klass.info.foreign_bases) and (
                held.site in drawn and event.function is not None and held.site is not None
                and event.function.node.lineno <= held.site.line <= event.line):
            yield Collection(event.method, event.spot, "an array of random numbers", False, event, "closure")
        elif is_torch(owner) and is_layer(held) and made_in(held, event):
            yield Collection(event.method, event.spot, short(held), False, event, "closure")


def _is_set_elsewhere(project: Project, name: str, owner: Instance) -> bool:
    """Whether an attribute is used outside of the class, or changed in place."""
    own = [(c.file.path, c.node.lineno, c.node.end_lineno or c.node.lineno) for c in owner.klass.info.lineage()]
    for file in (f for f in project.files if name in f.text):
        for node in (n for n in syntax(file).of(ast.Attribute) if n.attr == name):
            parent = syntax(file).parent(node)
            in_place = (isinstance(parent, ast.Attribute) and parent.attr.endswith("_")) or (
                isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store))
            if in_place or not any(p == file.path and a <= node.lineno <= b for p, a, b in own):
                return True
    return False


def _tensor(project: Project, event: Event, owner: Instance, value: Value) -> Iterator[Collection]:
    """A plain tensor that is made to learn: it requires gradients, or is reckoned from a parameter that nothing
    registers, or changes nothing as long as it does not learn."""
    name = event.method
    made = next((p for p in parts(value) if isinstance(p, Thing) and p.type == "torch.nn.Parameter"), None)
    stored = sum(1 for a in owner.attrs.values() if a is made)
    what = ""
    if is_torch(owner) and isinstance(value, Tensor) and not value.models:
        leaf = value.grad is True or (value.site == event.site and any(
            isinstance(e.receiver, Tensor) and e.receiver.site == event.site for e in project.calls("requires_grad_")))
        what = "a tensor that requires gradients" if leaf else ""
    elif is_torch(owner) and made is not None and value is not made and not stored and made.site == event.site:
        reckoned = isinstance(value, Operation) and value.op in _ARITHMETIC
        reshaped = isinstance(value, Symbol) and value.role == "call" and value.name.partition("@")[0] in _RESHAPES
        what = "the result of an operation on a Parameter, which is a plain tensor" if reckoned or reshaped else ""
    if not what and isinstance(value, Tensor) and not any("equinox" in b for b in owner.klass.info.foreign_bases):
        what = _neutral(owner, name, value)
    uses = [n for m in owner.klass.info.methods.values() if m.info.name != "__init__" for n in below(m.info.node)
            if isinstance(n, ast.Attribute) and n.attr == name] if what else []
    if not uses or any(isinstance(n.ctx, ast.Store) for n in uses) or _is_set_elsewhere(project, name, owner):
        return
    given = [t.site for e in project.events if e.kind == "call" and is_optimizer(e.result)
             for a in (*e.args, *e.kwargs.values()) for t in flat(a) if isinstance(t, Tensor)]
    if not isinstance(value, Tensor) or value.site not in given:
        yield Collection(name, event.spot, what, False, event, "tensor")


def _neutral(owner: Instance, name: str, value: Tensor) -> str:
    """Ones that the pass multiplies by, zeros that it adds."""
    if value.low is None or value.low != value.high or value.shape is None or not value.shape.dims:
        return ""
    for method in owner.klass.info.methods.values():
        for node in below(method.info.node) if method.info.name in _PASSES else ():
            said = _NEUTRAL.get((value.low, type(node.op))) if isinstance(node, ast.BinOp) else None
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
            if said and any(isinstance(s, ast.Attribute) and s.attr == name for s in sides):
                return f"an array of {said}, with which the pass reckons and which changes nothing as it is,"
    return ""


def _made_in_passes(project: Project) -> Iterator[Collection]:
    """Layers with random weights that a forward pass makes, calls and drops."""
    made = [e for e in project.events if e.kind == "call" and isinstance(e.result, Thing) and e.name == e.result.type
            and e.name.startswith("torch.nn.") and e.result.short.startswith(LEARNS) and e.grad is not False
            and e.result.short != "Parameter" and e.function is not None and e.function.name != "__init__"
            and e.function.owner is not None and e.function.owner.is_module]
    if not made:
        return
    called = {id(e.receiver) for e in project.calls("__call__") if any(
        e.receiver is m.result and e.function is m.function for m in made)}
    kept = {id(v) for e in project.events if e.kind == "store" or e.method not in ("to", "cuda", "__call__", "train")
            for a in ([e.receiver, *e.args] if e.kind != "named" else []) if a is not None
            for v in [*flat(a), *parts(a)]}
    seen: set[int] = set()
    for event in made:
        if id(event.result) in called - kept and id(event.node) not in seen:
            seen.add(id(event.node))
            yield Collection("", event.spot, event.name.rpartition(".")[2], False, event, "pass")
