"""The places where a program drops units, from the calls that the follower saw."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.knowledge import calls
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Const, Operation, Symbol, Thing, Value, number, parts, truth
from traindx_tools.program.entities import Drop


def dropped(project: Project) -> Iterator[Drop]:
    """Every layer and every function that drops units, each place once."""
    seen: set[int] = set()
    for event in project.calls(*calls.drops()):
        row = next((r for r in calls.drops()[event.method] if event.name.startswith(r.home)), None)
        made = isinstance(event.result, Thing) and event.name == event.result.type
        if row is None or id(event.node) in seen or row.is_layer is not made:
            continue
        seen.add(id(event.node))
        given = event.argument(*row.probability)
        share = None if _is_asked(event, row.probability) else number(given)
        yield Drop(event.name, share, event.spot, row.is_layer, isinstance(given, Const) and given.fixed,
                   "asks" if row.training is None else _mode(project, event, row.training), _in_module(event),
                   origin=event)


def _is_asked(event: Event, place: tuple[int, str]) -> bool:
    """Whether its function asks for the probability first: `if p == 1: return x`, `if p < 1: x = dropout(x, p)`."""
    given = argument(event.node, *place) if isinstance(event.node, ast.Call) else None
    if given is None or isinstance(given, ast.Constant) or event.function is None:
        return False
    asked = [n.test for n in below(event.function.node) if isinstance(n, (ast.If, ast.IfExp))]
    return any(written(n) == written(given) for test in asked for n in below(test) if isinstance(n, ast.expr))


def _mode(project: Project, event: Event, training: tuple[int, str]) -> str:
    """Whether a function is told the mode: by its argument, or by a condition that it stands under."""
    given = event.argument(*training)
    if "**" in event.kwargs or "*" in event.kwargs or (given is not None and truth(given) is None):
        return "asks"
    if given is not None and truth(given) is False:
        return "never"
    places = (p for root in project.roots_with((event.method,)) for p in root.places if p.event is event)
    place: Place | None = next(places, None)
    if place is not None and any(_asks(b) for b in (*place.branches, *_left_before(place))):
        return "asks"
    return "default" if given is None else "forced"


def _left_before(place: Place) -> Iterator[Block]:
    """The conditions before a place after which it is not reached: `if not self.training: return x`."""
    inner: tuple[Block | Event, ...] = (*place.path[1:], place.event)
    for block, reached in zip(place.path, inner, strict=True):
        for item in block.body:
            if item is reached:
                break
            if isinstance(item, Block) and item.kind == "branch" and item.left:
                yield item


def _asks(branch: Block) -> bool:
    """Whether a condition asks a module for its mode."""
    return branch.subject is not None and any(isinstance(p, Symbol) and (p.role, p.name) == ("attribute", "training")
                                              for p in _all(branch.subject))


def _all(value: Value) -> Iterator[Value]:
    for part in parts(value):
        yield part
        if isinstance(part, Operation):
            yield from part.operands


def _in_module(event: Event) -> bool:
    owner = event.function.owner if event.function else None
    return owner is not None and owner.is_module
