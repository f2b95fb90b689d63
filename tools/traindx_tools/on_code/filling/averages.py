"""Moving averages of weights: what share of its past each keeps, how often it moves, and what it is used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from traindx_tools.knowledge import fetching
from traindx_tools.on_code import lengths
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import BACKWARD, Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, syntax
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import (
    Instance,
    Method,
    Operation,
    Parameters,
    Symbol,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    unwrap,
)
from traindx_tools.program.driving import Average

_FORMS = frozenset({"lerp_", "add_", "copy_", "update_parameters", "incremental_update", "store", "blended"})
_BUFFERS = ("buffers", "named_buffers", "update_bn")
_HELD = frozenset({"items", "values", "state_dict", "parameters", "named_parameters", "clone"})


def averages(project: Project) -> Iterator[Average]:
    """Every update of an average of weights, once."""
    seen: set[int] = set()
    by_node = {id(e.node): e for e in project.events if e.kind == "call"}
    trained = {id(p.path[-1]) for t in project.training_loops for p in t.backwards} | {
        id(p.loops[-1]) for t in project.training_loops for p in t.backwards if p.loops}
    for root in project.roots_with(_FORMS) if by_node else ():
        for place in root.places:
            event = place.event
            if id(event) in seen or (event.method not in _FORMS and event.kind not in _FORMS):
                continue
            found = _read(event, by_node)
            if found is not None and _is_weight(found[0], found[1]):
                seen.add(id(event))
                yield _made(project, place, *found, trained)


def moved(project: Project) -> Iterator[tuple[Event, Value]]:
    """Where an average of weights moves, and the module that it is."""
    by_node = {id(e.node): e for e in project.events if e.kind == "call"}
    for event in project.events:
        found = _read(event, by_node) if event.method in _FORMS or event.kind in _FORMS else None
        home = event.function.owner if event.function is not None else None
        kept = (_module(found[0]) or next((i for i in project.instances if i.klass.info is home), None)) if (
            found is not None) else None
        if found is not None and kept is not None and _is_weight(found[0], found[1]):
            yield event, kept


def _read(event: Event, by_node: Mapping[int, Event]) -> tuple[Value, Value | None, float | None] | None:
    """(the average, what it follows, the share of its past that it keeps) of an update in any of its forms."""
    owner, given = event.receiver, event.args[0] if event.args else None
    if event.method in ("lerp_", "lerp") and owner is not None:
        return owner, given, _rest(number(event.argument(1, "weight")))
    if event.method == "add_" and isinstance(event.node, ast.Call) and isinstance(event.node.func, ast.Attribute):
        inner = by_node.get(id(event.node.func.value))
        if inner is not None and inner.method == "mul_" and inner.receiver is not None:
            kept, added = number(inner.argument(0, "other")), number(event.kwargs.get("alpha"))
            return inner.receiver, given, kept if _completes(kept, added) else None
    if event.method == "update_parameters" and isinstance(owner, Thing) and owner.short == "AveragedModel":
        return owner, given, _of_library(owner, by_node)
    if event.method == "incremental_update" and len(event.args) > 1:
        return event.args[1], given, _rest(number(event.argument(2, "step_size")))
    if event.method == "copy_" and owner is not None:
        return _blended(owner, given)
    return _blended(event.args[0], event.args[-1]) if event.kind == "blended" and event.args else None


def _completes(share: float | None, rest: float | None) -> bool:
    return share is not None and rest is not None and abs(share + rest - 1) < 1e-9


def _rest(weight: float | None) -> float | None:
    return None if weight is None else round(1 - weight, 12)


def _blended(owner: Value, made: Value | None) -> tuple[Value, Value | None, float | None] | None:
    """`d * average + (1 - d) * new`, in either order."""
    products = made.operands if isinstance(made, Operation) and made.op == "+" else ()
    pairs = [p.operands if number(p.operands[0]) is not None else p.operands[::-1] for p in products
             if isinstance(p, Operation) and p.op == "*" and len(p.operands) == 2]
    if len(pairs) != 2 or len(products) != 2:
        return None
    for (share, value), (rest, new) in (pairs, pairs[::-1]):
        if _plain(value) == _plain(owner) and _completes(number(share), number(rest)):
            return owner, new, number(share)
    return None


def _plain(value: Value) -> Value:
    """A tensor without `.data`."""
    return value.receiver if isinstance(value, Method) and value.name == "data" else value


def _of_library(made: Thing, by_node: Mapping[int, Event]) -> float | None:
    """torch's AveragedModel with an exponential average."""
    node = made.node if isinstance(made.node, ast.Call) else None
    function = (argument(node, 2, "avg_fn") or argument(node, 3, "multi_avg_fn")) if node is not None else None
    event = by_node.get(id(function))
    if event is None or not event.method.startswith("get_ema"):
        return None
    given = event.argument(0, "decay")
    return 0.999 if given is None else number(given)


def _is_weight(owner: Value, new: Value | None) -> bool:
    """Whether it is weights that are averaged: parameters, or entries of what a module's state was walked for."""
    return any(_module(v) is not None or _of_a_state(v) for v in (owner, new) if v is not None)


def _of_a_state(value: Value) -> bool:
    names = {p.name.partition("@")[0] for p in parts(_plain(value))
             if isinstance(p, Symbol) and p.role in ("call", "parameter")}
    return bool(names & _HELD) or any(n.endswith("params") for n in names)


def _module(value: Value | None) -> Value | None:
    """The module whose parameter, or wrapper, a value is."""
    value = _plain(value) if value is not None else None
    of = value.state.get("of") if isinstance(value, Thing) else None
    if isinstance(of, Parameters):
        return unwrap(of.modules[0]) if len(of.modules) == 1 else None
    return value if isinstance(value, Thing) and value.short == "AveragedModel" else None


def _made(project: Project, place: Place, owner: Value, new: Value | None, share: float | None,
          trained: set[int]) -> Average:
    event, kept = place.event, _module(owner)
    node = event.node if event.kind == "call" else syntax(event.file).statement(event.node) or event.node
    found = Average(event.spot, event.file.segment(node), share)
    if not isinstance(_plain(owner), Tensor):  # a tensor of zeros that is divided by 1 - d^n afterwards is no copy
        found.updates = _updates(place)
    first = next((i for i, b in enumerate(place.path) if b.kind == "loop" and BACKWARD & b.methods), len(place.path))
    found.late = any(b.kind == "branch" for b in place.path[first:])
    if kept is None:
        found.evaluated = any(project.calls("load_state_dict")) or any(
            e is not event and _is_parameter(e.receiver)
            for e in (*project.calls("copy_"), *(s for s in project.events if s.name == "attribute.data")))
        return found
    found.pretrained = bool(kept.state.get("pretrained")) if isinstance(kept, (Thing, Instance)) else any(
        isinstance(p, Symbol) and p.name.startswith("from_pretrained@") for p in parts(kept))
    calls = [p for r in project.roots_with({"__call__"}) for p in r.places if p.event.method == "__call__" and (
        p.event.receiver is not None and unwrap(p.event.receiver) is kept)]
    inside = [any(id(b) in trained for b in p.loops) for p in calls]
    found.in_step = any(inside)
    evals = any(e.receiver is not None and unwrap(e.receiver) is kept for e in project.calls("eval"))
    found.in_eval = evals
    found.evaluated = not all(inside)
    layers = [m for m in submodules(kept) or [kept] if isinstance(m, Thing)]
    found.statistics = next((m.short for m in layers if fetching.keeps_statistics(m.type)), "")
    loads = any(e.receiver is not None and unwrap(e.receiver) is kept for e in project.calls("load_state_dict"))
    found.buffers = loads or any(project.calls(*_BUFFERS)) or not isinstance(kept, (Thing, Instance))
    return found


def _is_parameter(value: Value | None) -> bool:
    plain = _plain(value) if value is not None else None
    return isinstance(plain, Thing) and plain.short == "Parameter"


def _updates(place: Place) -> float | None:
    """How often the update runs at most: the product of the turns of the training loops around it."""
    total, known = 1.0, False
    for block in place.loops:
        if BACKWARD & block.methods:
            count = lengths.turns(block.subject, block.count) or _while(block)
            if count is None:
                return None
            total, known = total * count, True
    return total if known and total >= 1 else None


def _while(block: Block) -> float | None:
    """How often `while step < total` runs, where the counter goes up by one."""
    test = block.node.test if isinstance(block.node, ast.While) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return None
    counter = ast.unparse(test.left)
    steps = [n.value for n in below(block.node) if isinstance(n, ast.AugAssign) and ast.unparse(n.target) == counter]
    ones = len(steps) == 1 and isinstance(steps[0], ast.Constant) and steps[0].value == 1
    sides = block.subject.operands if isinstance(block.subject, Operation) else ()
    return lengths.amount(sides[1]) if ones and len(sides) == 2 else None
