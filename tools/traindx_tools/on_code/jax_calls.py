"""What jax's own calls mean: transformations, control flow, random keys."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes, containers, library
from traindx_tools.on_code.axis_calls import given_to
from traindx_tools.on_code.descriptions import Axes, Axis
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.turns import changed
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Operation,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    integer,
    number,
    parts,
)

if TYPE_CHECKING:
    from traindx_tools.on_code.interpreter import Frame

FACTORIES = words("names.toml", "factories")
"""Lower-case functions whose result is an object with an identity."""
_GRADS = frozenset({"jax.grad", "equinox.filter_grad", "flax.nnx.grad", "torch.func.grad", "jax.jacrev", "jax.jacfwd"})
_VALUES_AND_GRADS = frozenset({"jax.value_and_grad", "equinox.filter_value_and_grad", "flax.nnx.value_and_grad"})
_MAPS = frozenset({"jax.vmap", "jax.pmap", "equinox.filter_vmap", "torch.vmap", "torch.func.vmap"})


def wrapped(caller: Interpreter, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
        frame: Frame) -> Value | None:
    """The result of calling a transformed function; None if the transformations change nothing that is followed."""
    outer = function.wrappers[-1]
    if outer.endswith(("jit", "pmap")) and (statics := function.statics | function.info.statics):
        names = function.info.parameters[1 if function.owner is not None else 0 :]
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in statics and _changes(value, outer.startswith("equinox")):
                caller.event("static", name, node, frame, receiver=function, args=(value,))
    inner = Function(function.info, function.closure, function.closures, function.owner, function.wrappers[:-1])
    if outer in _GRADS or outer in _VALUES_AND_GRADS:
        before, caller.differentiated = caller.differentiated, True
        value = caller.invoke(inner, args, kwargs, node, frame)
        caller.differentiated = before
        grads = Tensor(grad=False, site=caller.site(node, frame), tags=frozenset({"gradient"}))
        return Bag("tuple", [value, grads]) if outer in _VALUES_AND_GRADS else grads
    if outer in _MAPS:
        return _mapped(caller, inner, args, kwargs, node, frame)
    return caller.invoke(inner, args, kwargs, node, frame)


def _mapped(caller: Interpreter, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
    """A function over the rows of its arguments."""
    rows = [caller.element(a, node, frame) if isinstance(a, (Tensor, Bag, Symbol)) else a for a in args]
    many = next((a for a in map(axes.of, args) if a is not None and a.dims), None)
    with caller.in_turns("map", node, frame, Bag("tuple", rows)):
        return _batched(caller.invoke(function, rows, kwargs, node, frame), axes.at(many, 0))


_FEW = 8
"""Values up to this many, each compiled once, are a matter of taste."""


def _changes(value: Value, certain: bool) -> bool:
    """Whether a number is another one in each turn of a loop. `certain`: only where nothing in it may be an array."""
    if isinstance(value, Operation):
        seen = list(parts(value))
        over = {id(q) for p in seen if _counts(p) and isinstance(p, Symbol) and p.parent for q in parts(p.parent)}
        if certain and not all(isinstance(p, (Const, Operation)) or _counts(p) or id(p) in over for p in seen):
            return False
        if value.op == "either":  # what a function gives in either of its branches
            return all(_changes(o, False) for o in value.operands)
        return value.op not in _FEW_VALUES and any(_changes(o, False) for o in value.operands)
    return _counts(value)


_FEW_VALUES = frozenset({"compare", "%", "//", "len", "~"})


def _counts(value: Value) -> bool:
    """Whether a value is the counter of a loop of more than a few turns."""
    if not isinstance(value, Symbol) or value.role != "index":
        return False
    turns = number(value.parent.state.get("count")) if isinstance(value.parent, Thing) else None
    return turns is None or turns >= _FEW


def _batched(value: Value, rows: Axis) -> Value:
    """A row's result for every row: of its shape only a last axis of 1 that a layer made is certain."""
    if isinstance(value, (Tensor, Symbol)):
        known = axes.of(value)
        value = given_to(value, Axes((rows, *known.dims)) if known is not None else None)
    if isinstance(value, Bag):
        return Bag(value.kind, [_batched(v, rows) for v in value.items], value.open)
    return value


@library.function("jax.vmap", "equinox.filter_vmap")
def _mapped_layer(caller: Interpreter, call: Call) -> Value | None:
    """A layer of equinox over the rows of a batch: its output has another last axis, as without the map."""
    if isinstance(call.first, Instance) and (method := call.first.klass.info.method("__call__")) is not None:
        own = caller.bound(method, call.first)
        return Function(own.info, own.closure, own.closures, own.owner, (*own.wrappers, "jax.vmap"))
    return call.first if isinstance(call.first, Thing) and call.first.type.startswith("equinox.nn.") else None


@library.function("jax.lax.scan", "flax.linen.scan", "flax.nnx.scan")
def _scan(caller: Interpreter, call: Call) -> Value | None:
    body, init, xs = call.get(0, "f"), call.get(1, "init"), call.get(2, "xs")
    if init is None or body is None or not _is_body(body):
        return None
    row = caller.element(xs, call.node, call.frame) if xs is not None else UNKNOWN
    with caller.in_turns("scan", call.node, call.frame, init) as block:
        result = caller.call(body, [init, row], {}, call.node, call.frame)
        pair = isinstance(result, Bag) and len(result.items) == 2
        block.renewed = tuple(changed(init, result.items[0] if pair and isinstance(result, Bag) else None, block))
    return (Bag("tuple", [_batched(v, axes.at(axes.of(xs), 0)) if i else v for i, v in enumerate(result.items)])
        if isinstance(result, Bag) and (len(result.items) == 2) else Bag("tuple", [UNKNOWN, UNKNOWN]))


def _is_body(value: Value) -> bool:
    return isinstance(value, Function) or (isinstance(value, Thing) and value.type == "functools.partial")


@library.function("jax.lax.fori_loop", "jax.lax.while_loop")
def _loops(caller: Interpreter, call: Call) -> Value | None:
    body, init = ((call.get(2, "body_fun"), call.get(3, "init_val")) if call.name.endswith("fori_loop")
        else (call.get(1, "body_fun"), call.get(2, "init_val")))
    if body is None or init is None or not _is_body(body):
        return None
    args = [Symbol("index", "index"), init] if call.name.endswith("fori_loop") else [init]
    with caller.in_turns("scan", call.node, call.frame, init) as block:
        result = caller.call(body, args, {}, call.node, call.frame)
        block.renewed = tuple(changed(init, result, block))
    return result


@library.function("jax.lax.map")
def _lax_map(caller: Interpreter, call: Call) -> Value | None:
    body, rows = call.get(0, "f"), call.get(1, "xs")
    if not isinstance(body, Function) or rows is None:
        return None
    return _mapped(caller, body, [rows], {}, call.node, call.frame)


@library.function("jax.lax.cond")
def _cond(caller: Interpreter, call: Call) -> Value | None:
    branches = [a for a in call.args[1:3] if isinstance(a, Function)]
    results = [caller.call(b, list(call.args[3:]), {}, call.node, call.frame) for b in branches]
    return containers.joined(results) if results else None


@library.function("jax.lax.switch")
def _switch(caller: Interpreter, call: Call) -> Value | None:
    listed = call.get(1, "branches")
    branches = [b for b in listed.items if isinstance(b, Function)] if isinstance(listed, Bag) else []
    results = [caller.call(b, list(call.args[2:]), {}, call.node, call.frame) for b in branches]
    return containers.joined(results) if results else None


@library.function("jax.tree_util.tree_map", "jax.tree.map", "jax.tree_map")
def _tree_map(caller: Interpreter, call: Call) -> Value | None:
    function = call.get(0, "f")
    leaves = [_leaf(a) for a in call.args[1:]]
    if function is None:
        return None
    result = caller.call(function, leaves, {}, call.node, call.frame)
    first = call.args[1] if len(call.args) > 1 else None
    if isinstance(first, Table):
        return Table(dict.fromkeys(first.items, result), open=first.open, rest=result)
    return result


def _leaf(value: Value) -> Value:
    if isinstance(value, Table):
        return containers.joined([*value.items.values(), *([value.rest] if value.rest else [])])
    return containers.joined(value.items) if isinstance(value, Bag) else value


@library.function("flax.training.train_state.TrainState.create", "flax.training.TrainState.create")
def _train_state(caller: Interpreter, call: Call) -> Value:
    """A training state; its attributes are what it was made of."""
    return Thing("flax.TrainState", (), call.kwargs, call.site, call.node, {}, caller.loops)


@library.function("jax.random.split")
def _split(caller: Interpreter, call: Call) -> Value:
    wanted = call.get(1, "num")
    count = integer(wanted) if wanted is not None else 2
    site = call.site
    made: list[Value] = [Thing("jax.key", (call.first,), {}, site, call.node, {"index": i}, caller.loops)
        for i in range(min(count or 2, 64))]
    return Bag("keys", made, open=count is None, site=site, born_in=caller.loops)


@library.function("jax.random.fold_in", "jax.random.clone")
def _fold_in(caller: Interpreter, call: Call) -> Value:
    if call.name.endswith("fold_in") and not isinstance(call.get(1, "data"), Const):
        caller.created += 1  # a call that does this again has folded in something else: a count, a step
    return Thing("jax.key", call.args, {}, call.site, call.node, {}, caller.loops)
