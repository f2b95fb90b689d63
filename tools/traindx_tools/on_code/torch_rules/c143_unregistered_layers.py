"""Layers are kept in a plain list or dict.

A module registers what is assigned to it directly or held in `nn.ModuleList`, `nn.ModuleDict` or `nn.Sequential`.
Layers in a Python list run in the forward pass, but `parameters()`, `to(device)`, `state_dict()`, `train()` and
`eval()` do not see them: they are never trained, moved or saved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Instance, Table, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C143",
    name="unregistered-layers",
    title="Layers in a plain list are not registered",
    severity=Severity.HIGH,
    sees="Layers with parameters made in a module and kept in a list or dict of it that nothing registers.",
    matters="These layers stay at their random initialisation and are missing from checkpoints.",
    alike=("layers frozen on purpose",),
    confirm=("print([n for n, _ in model.named_parameters()])",),
)

_WITH_PARAMETERS = ("Linear", "Conv", "Embedding", "LSTM", "GRU", "Sequential", "Transformer", "Multihead", "Bilinear")
_REGISTER = ("add_module", "register_module", "setattr", "ModuleList", "ModuleDict", "Sequential", "ParameterList")


def check(project: Project) -> Iterator[Finding]:
    """Look at every list that becomes an attribute of a module."""
    registered = {id(v) for e in project.calls(*_REGISTER) for a in (*e.args, *e.kwargs.values()) for v in _flat(a)}
    for event in project.events:
        owner = event.receiver
        if event.kind != "store" or not event.name.startswith("attribute.") or not isinstance(owner, Instance):
            continue
        held = event.args[0]
        if not owner.klass.info.is_module or not _torch(owner) or not isinstance(held, (Bag, Table)):
            continue
        name = event.name.partition(".")[2]
        layers = [v for v in _flat(held) if _is_layer(v)]
        alone = isinstance(held, Bag) and not held.open and len(held.items) < 2
        if alone or not layers or len(layers) != len(_flat(held)) or owner.attrs.get(name) is not held:
            continue
        others = {
            id(m)
            for n, a in owner.attrs.items()
            if n != name and not isinstance(a, (Bag, Table))
            for m in submodules(a)
        }
        kept = registered | others
        if not any(id(v) in kept for v in layers) and all(_made_in(v, event) for v in layers):
            yield _finding(event, name, layers)


def _torch(owner: Instance) -> bool:
    return any(
        b.endswith(("nn.Module", "LightningModule")) and "flax" not in b and "equinox" not in b
        for b in owner.klass.info.foreign_bases
    )


def _flat(value: Value) -> list[Value]:
    if isinstance(value, Bag):
        return [v for i in value.items for v in (_flat(i) if isinstance(i, (Bag, Table)) else [i])]
    if isinstance(value, Table):
        return [*value.items.values(), *([value.rest] if value.rest else [])]
    return [value]


def _is_layer(value: Value) -> bool:
    if isinstance(value, Thing):
        return value.type.startswith("torch.nn.") and value.short.startswith(_WITH_PARAMETERS)
    return isinstance(value, Instance) and value.klass.info.is_module and len(submodules(value)) > 1


def _made_in(value: Value, event: Event) -> bool:
    """Whether the layer is made by the method that keeps it."""
    node = event.function.node if event.function else None
    if node is None or not isinstance(value, (Thing, Instance)) or value.site.path != event.file.path:
        return False
    return node.lineno <= value.site.line <= (node.end_lineno or node.lineno)


def _finding(event: Event, name: str, layers: list[Value]) -> Finding:
    first = layers[0]
    kind = (
        first.short if isinstance(first, Thing) else first.klass.info.name if isinstance(first, Instance) else "layer"
    )
    return RULE.finding(
        f"{kind} layers are kept in the plain container self.{name} at {event.file.path}:{event.line}, which the "
        "module does not register: parameters() leaves them out and the optimizer never updates them",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "unregistered", "attribute": name},
        patch=_patch(event),
    )


def _patch(event: Event) -> tuple[Patch, ...]:
    statement = syntax(event.file).statement(event.node)
    one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return forms.registered(event.file, statement.value) if one and isinstance(statement, ast.Assign) else ()
