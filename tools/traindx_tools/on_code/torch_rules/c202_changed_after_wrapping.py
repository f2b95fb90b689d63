"""A module gets new parameters after it was wrapped, or parameters that were frozen then are made trainable.

DistributedDataParallel registers its hooks on the parameters that exist when it is built, and that require a gradient
then. A head that is replaced, a layer that is added, or a backbone that is unfrozen afterwards is not synchronised:
every rank trains its own copy of it. Wrapping again after the change, or wrapping before anything is frozen, helps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import ranks
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.thawing import switched
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.values import Instance, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C202",
    name="changed-after-wrapping",
    title="New or unfrozen parameters after the model was wrapped",
    severity=Severity.HIGH,
    sees="A layer assigned to a module that DistributedDataParallel already holds, or unfrozen in it.",
    matters="The new layer is not synchronised: the replicas differ in it and in what they learn.",
    alike=("a layer that is replaced before the wrapping", "a layer that is frozen after the wrapping"),
    confirm=("compare the layer's weights across ranks after some steps",),
)
_WITH_PARAMETERS = ("Linear", "Conv", "Embedding", "BatchNorm", "LayerNorm", "LSTM", "GRU", "Transformer", "Sequential",
                    "MultiheadAttention", "Parameter")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at what happens after every wrapping."""
    for root in project.roots:
        if not {"DistributedDataParallel"} & root.methods:
            continue
        held: dict[int, Event] = {}
        for place in project.places(root):
            event = place.event
            if event.kind == "call" and isinstance(event.result, Thing) and event.method == "DistributedDataParallel":
                held.update({id(m): event for m in submodules(unwrap(event.result))})
                continue
            new = event.args[0] if event.kind == "store" and id(event.receiver) in held else None
            if new is not None and _is_layer(new) and not any(new is old for old in event.args[1:]):
                yield _finding(event, held[id(event.receiver)])
        yield from _thawed(project.places(root))


def _thawed(places: Sequence[Place]) -> Iterator[Finding]:
    """What was frozen when it was wrapped and is made trainable later, without another wrapping."""
    frozen: set[int] = set()
    held: dict[int, Event] = {}
    thawed: dict[int, Place] = {}
    for place in places:
        event = place.event
        if event.kind == "call" and event.method == "DistributedDataParallel" and isinstance(event.result, Thing):
            inside = {id(m) for m in submodules(unwrap(event.result))}
            held.update(dict.fromkeys(inside & frozen, event))
            thawed = {i: p for i, p in thawed.items() if i not in inside}
            continue
        change = switched(event)
        if change is None:
            continue
        parts, trainable = {id(m) for m in change[0]}, change[1]
        if not trainable:
            frozen |= parts
            continue
        thawed.update(dict.fromkeys(parts & set(held) & frozen, place))
        frozen -= parts
    if thawed:
        module, place = next(iter(thawed.items()))
        yield _unfrozen(place, held[module])


def _unfrozen(place: Place, wrapped: Event) -> Finding:
    """Told of the call of the helper that unfreezes, where there is one."""
    code, node = syntax(place.event.file), place.event.node
    caller = next((b for b in reversed(place.path) if b.kind == "call"), None)
    if caller is not None and isinstance(caller.node, ast.Call) and caller.node.args:
        code, node = syntax(caller.file), caller.node
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} unfreezes parameters after DistributedDataParallel was built at "
        f"{wrapped.file.path}:{wrapped.line}, when they required no gradient: they have no hooks, their gradients are "
        "not synchronised, and each rank trains its own copy",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "unfrozen", "wrapped_line": wrapped.line},
        patch=ranks.wrapped_again(code, node, wrapped.node) if wrapped.file is code.file else (),
    )


def _is_layer(value: Value) -> bool:
    inner = unwrap(value)
    if isinstance(inner, Instance):
        return inner.klass.info.is_module
    return isinstance(inner, Thing) and inner.type.startswith("torch.nn.") and inner.short.startswith(_WITH_PARAMETERS)


def _finding(event: Event, wrapped: Event) -> Finding:
    name = event.name.partition(".")[2]
    return RULE.finding(
        f"{name} is assigned at {event.file.path}:{event.line}, after DistributedDataParallel was built at line "
        f"{wrapped.line}: its parameters have no hooks and are not synchronised",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "added", "wrapped_line": wrapped.line},
    )
