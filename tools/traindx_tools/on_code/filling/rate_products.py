"""Learning rates that are multiplied into themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.syntax import last_name, written
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import innermost
from traindx_tools.on_code.values import Symbol, parts
from traindx_tools.program.constants import RateProduct

_RATES = frozenset(table("settings.toml")["rates"])


def rate_products(project: Project) -> Iterator[RateProduct]:
    """Every product of a rate and something that depends on a loop's counter, or that each step takes again."""
    each = {id(p.event) for loop in project.training_loops for p in loop.places if p.event.kind == "augmented"
            and _in_each_step(p, loop)}
    for event in project.events:
        rate = _rate(event)
        if rate is None or _is_set_back(project, event, rate):
            continue
        counters = [p for p in parts(event.args[1]) if isinstance(p, Symbol) and p.role == "index"]
        grouped = isinstance(rate, ast.Subscript)
        if counters or (id(event) in each and grouped):
            yield RateProduct(event.spot, event.text, written(rate), bool(counters))


def _rate(event: Event) -> ast.expr | None:
    """The rate that an event multiplies or divides, where it outlives the turn."""
    if event.kind != "augmented" or event.name not in ("augmented.*", "augmented./"):
        return None
    node = event.node
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets if isinstance(node, ast.Assign) else []
    target = targets[0] if targets else None
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return target if target.slice.value in _RATES else None
    kept = isinstance(target, ast.Attribute) or event.crossing > 0
    return target if isinstance(target, (ast.Name, ast.Attribute)) and kept and last_name(target) in _RATES else None


def _is_set_back(project: Project, event: Event, rate: ast.expr) -> bool:
    """Whether the rate is set from something else in the same function."""
    item = rate.slice if isinstance(rate, ast.Subscript) else None
    name = f"item.{item.value!s}" if isinstance(item, ast.Constant) else f"attribute.{last_name(rate)}"
    return any(e.name == name and e.function is event.function and e.line != event.line and e.file is event.file
               for e in project.events if e.kind == "store")


def _in_each_step(place: Place, loop: TrainingLoop) -> bool:
    """Whether it runs in every turn of the innermost loop that trains."""
    stepping = innermost(place, loop)
    inside = place.path[place.path.index(stepping) + 1:]
    deeper = any(b.kind == "loop" and b is not stepping for p in loop.backwards if stepping in p.path
                 for b in p.path[p.path.index(stepping):])
    return not deeper and not any(b.kind == "branch" for b in inside)
