"""The plain lists and dicts of layers that modules keep."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.filling.ownership import short
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.layers import with_parameters
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Instance, Table, Thing, Value
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
        others = {id(m) for n, a in owner.attrs.items() if n != name and not isinstance(a, (Bag, Table))
                  for m in submodules(a)}
        kept = not all(made_in(v, event) for v in inside) or any(
            id(v) in registered_in(project) | others for v in inside)
        yield Collection(name, spot_of(event), short(inside[0]), kept, event)


@kept
def registered_in(project: Project) -> set[int]:
    """The identities of what anything registers; found once."""
    return {id(v) for e in project.calls(*_REGISTER) for a in (*e.args, *e.kwargs.values()) for v in flat(a)}


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
