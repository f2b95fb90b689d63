"""A module gets new parameters after it was wrapped.

DistributedDataParallel registers its hooks on the parameters that exist when it is built. A head that is replaced, or
a layer that is added, afterwards is not synchronised: every rank trains its own copy of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Instance, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C202",
    name="changed-after-wrapping",
    title="New parameters after the model was wrapped",
    severity=Severity.HIGH,
    sees="A layer assigned to a module that DistributedDataParallel already holds.",
    matters="The new layer is not synchronised: the replicas differ in it and in what they learn.",
    alike=("a layer that is replaced before the wrapping",),
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
        strength=Strength.DIRECT,
        measured={"kind": "added", "wrapped_line": wrapped.line},
    )
