"""Parameters are given to an optimizer twice.

`[{"params": model.parameters()}, {"params": model.head.parameters(), "lr": 1e-3}]` names the head's parameters in both
groups, which torch refuses; in one list they are updated twice in every step (torch only warns). The first group has
to leave out what the second one names.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.held import held, one_by_one
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Bag, Instance, Parameters, Table, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C164",
    name="parameters-twice",
    title="Parameters are given to the optimizer twice",
    severity=Severity.HIGH,
    sees="Two parameter groups, or two parts of one list, of which one module contains the other.",
    matters="ValueError at the start, or parameters that are updated twice in every step.",
    alike=("tied weights, which torch counts once", "groups chosen by a condition, which the rule leaves alone"),
    confirm=("ids = [id(p) for g in groups for p in g['params']]; len(ids) - len(set(ids))",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at what each optimizer is built over."""
    for event in project.events:
        made = event.result
        if event.kind != "call" or not isinstance(made, Thing) or not is_optimizer(made) or event.name != made.type:
            continue
        found = held(made) or []
        whole = not one_by_one(made) and not any(p.only_trainable for p in found)
        pair = _overlapping(found) if whole else None
        if pair is None:
            continue
        groups = isinstance(made.args[0] if made.args else None, Bag) and any(
            isinstance(i, Table)
            for i in made.args[0].items  # type: ignore[union-attr]
        )
        yield RULE.finding(
            f"{made.short} at {event.file.path}:{event.line} is given the parameters of the module made at "
            f"{_site(pair[1])} twice: by themselves and as a part of the module made at {_site(pair[0])}"
            + ("" if groups else "; they are updated twice in every step"),
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "groups" if groups else "list"},
        )


def _overlapping(found: list[Parameters]) -> tuple[Value, Value] | None:
    modules = [unwrap(m) for p in found for m in p.modules]
    for i, outer in enumerate(modules):
        inside = {id(m) for m in submodules(outer)} | {id(outer)}
        for j, other in enumerate(modules):
            known = isinstance(other, (Thing, Instance)) and id(other) in inside
            if known and i != j and (outer is not other or i < j):
                return outer, other
    return None


def _site(module: Value) -> object:
    return module.site if isinstance(module, (Thing, Instance)) else "?"
