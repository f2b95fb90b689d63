"""Parameters are unfrozen after the optimizer was built without them.

`filter(lambda p: p.requires_grad, model.parameters())` chooses once, when the optimizer is built. What is unfrozen
later (gradual unfreezing, a second phase of fine-tuning) gets gradients and is in no parameter group: it never moves.
An `add_param_group`, a new optimizer, or an optimizer over all parameters (frozen ones have no gradient and are
skipped) silences the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import optimizers
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import is_optimizer, same, stepped
from traindx_tools.on_code.values import Instance, Parameters, Thing, Value, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C162",
    name="unfrozen-after-optimizer",
    title="Unfrozen parameters are in no optimizer",
    severity=Severity.HIGH,
    sees="requires_grad set back to True for a module that the optimizer's filter by requires_grad left out.",
    matters="The unfrozen part gets gradients and is never updated; the second phase changes nothing.",
    alike=("a learning rate too small for the unfrozen part",),
    confirm=(
        "sum(p.numel() for g in optimizer.param_groups for p in g['params']) before and after unfreezing",
        "compare a weight of the unfrozen part before and after an epoch",
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer that was built over the trainable parameters."""
    for root in project.roots:
        if "step" not in root.methods:
            continue
        places = project.places(root)
        for place in places:
            made = place.event.result
            if _is_new(place.event) and isinstance(made, Thing) and made.state.get("frozen_parts"):
                yield from _later(places, place, made)


def _later(places: Sequence[Place], made_at: Place, optimizer: Thing) -> Iterator[Finding]:
    frozen: dict[int, Value] = optimizer.state["frozen_parts"]
    later = [p for p in places if p.order > made_at.order]
    if any(p.event.method == "add_param_group" or _is_new(p.event) for p in later):
        return
    for place in later:
        event = place.event
        thawed = [m for m in _thawed(event) if id(m) in frozen]
        if thawed and any(p.order > place.order and same(stepped(p.event), optimizer) for p in later):
            name = event.file.segment(event.node)
            yield RULE.finding(
                f"{name} at {event.file.path}:{event.line} unfreezes the module made at {_site(thawed[0])} after the "
                f"optimizer was built at line {made_at.event.line} over the parameters that were trainable then: what "
                "is unfrozen is in none of its groups and is never updated",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "unfrozen", "optimizer_line": made_at.event.line},
                patch=optimizers.over_all(made_at.event.file, made_at.event.node),
            )
            return


def _is_new(event: Event) -> bool:
    made = event.result
    return event.kind == "call" and isinstance(made, Thing) and is_optimizer(made) and event.name == made.type


def _thawed(event: Event) -> list[Value]:
    """The modules whose parameters an event makes trainable."""
    wanted: Value | None = None
    if event.kind == "store" and event.name == "attribute.requires_grad":
        wanted = event.args[0]
    elif event.kind == "call" and event.method == "requires_grad_":
        wanted = event.argument(0, "requires_grad")
        if wanted is None:
            return _modules(event.receiver)
    return _modules(event.receiver) if wanted is not None and truth(wanted) is True else []


def _modules(target: Value | None) -> list[Value]:
    if isinstance(target, Thing) and isinstance(target.state.get("of"), Parameters):
        found: list[Value] = list(target.state["of"].modules)
    else:
        found = [target] if isinstance(target, (Thing, Instance)) else []
    return [m for owner in found for m in submodules(owner) or [owner]]


def _site(module: Value) -> object:
    return module.site if isinstance(module, (Thing, Instance)) else "?"
