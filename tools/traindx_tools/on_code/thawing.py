"""Which modules an event freezes or makes trainable."""

from __future__ import annotations

from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Instance, Parameters, Thing, Value, truth


def switched(event: Event) -> tuple[list[Value], bool] | None:
    """(the modules with their parts, whether they are trainable now); None for any other event."""
    if event.kind == "store" and event.name == "attribute.requires_grad":
        wanted = truth(event.args[0])
    elif event.kind == "call" and event.method == "requires_grad_":
        given = event.argument(0, "requires_grad")
        wanted = True if given is None else truth(given)
    else:
        return None
    return None if wanted is None else (_modules(event.receiver), wanted)


def _modules(target: Value | None) -> list[Value]:
    if isinstance(target, Thing) and isinstance(target.state.get("of"), Parameters):
        found: list[Value] = list(target.state["of"].modules)
    else:
        found = [target] if isinstance(target, (Thing, Instance)) else []
    return [m for owner in found for m in submodules(owner) or [owner]]
