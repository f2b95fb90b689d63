"""A running total is sent backward in every iteration.

`total = total + loss; total.backward()` goes back through the graphs of all iterations so far: without `retain_graph`
torch raises in the second one, with it memory and time grow with every step and old batches are counted again with
weights that have changed since (an in-place error, or wrong gradients).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import innermost
from traindx_tools.rules import Rule

RULE = Rule(
    id="C156",
    name="loss-carried-over",
    title="A running total of losses is sent backward in every iteration",
    severity=Severity.HIGH,
    sees="backward on a sum that was bound outside the loop and grows in it.",
    matters="An error about a freed graph, or memory and step time that grow, and gradients of stale graphs.",
    alike=("a loss kept for printing", "truncated backpropagation through time"),
    confirm=("watch memory over 100 steps",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        rebound: dict[int, frozenset[str]] = {}
        added = [p for p in loop.places if p.event.kind == "augmented"]
        for place in loop.backwards:
            inner = innermost(place, loop)
            node = place.event.node
            target = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
            if not isinstance(target, ast.Name) or inner.kind != "loop" or inner.framework:
                continue
            if id(inner) not in rebound:
                rebound[id(inner)] = _bound_anew(inner)
            grown = [p for p in added if _adds_to(p, target.id) and inner in p.path and _of_loop(p, inner, target.id)]
            if target.id not in rebound[id(inner)]:
                yield from _judged(place, target.id, inner, grown)


def _bound_anew(inner: Block) -> frozenset[str]:
    """The names that are given a value in a loop which does not hold what they were."""
    found: set[str] = set()
    for node in below(inner.node) if inner.node is not None else ():
        if isinstance(node, ast.Assign):
            read = {m.id for m in below(node.value) if isinstance(m, ast.Name)}
            found |= {t.id for x in node.targets for t in below(x) if isinstance(t, ast.Name)} - read
    return frozenset(found)


def _of_loop(place: Place, inner: Block, name: str) -> bool:
    """Whether the sum is of the function in which the loop stands: one that is called in it begins its own anew."""
    function = place.event.function
    shared = function is not None and any(
        isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in below(function.node))  # fmt: skip
    return shared or function is inner.function


def _judged(place: Place, name: str, inner: Block, grown: list[Place]) -> Iterator[Finding]:
    if grown and grown[0].event.crossing >= 1:
        event = place.event
        yield RULE.finding(
            f"backward() at {event.file.path}:{event.line} is called on {name}, which grows at line "
            f"{grown[0].event.line} in every iteration of the loop at line {inner.line} and is never set back: it goes "
            "through the graphs of all earlier iterations",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "carried", "grown_line": grown[0].event.line},
        )


def _adds_to(place: Place, name: str) -> bool:
    node = place.event.node
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name and isinstance(node.op, ast.Add)
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
