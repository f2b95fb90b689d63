"""The best weights are kept by reference.

`state_dict()` returns the live tensors. `best = model.state_dict()` at the best epoch goes on changing with the model,
so that loading it at the end changes nothing: the "best" model is the last one. A deep copy, or a file, keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.values import Instance, Symbol, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C150",
    name="best-weights-by-reference",
    title="The best weights are kept by reference",
    severity=Severity.HIGH,
    sees="load_state_dict on a model with a state_dict() of the same model that was taken in a loop and never copied.",
    matters="The reported best checkpoint is the last state: overfitted or diverged weights are used.",
    alike=("a checkpoint that does not fit the model",),
    confirm=("compare best_state with model.state_dict() after another epoch",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every state that is loaded back into the model it came from."""
    for root in project.roots:
        if {"state_dict", "load_state_dict"} <= root.methods:
            yield from _in_root(root)


def _in_root(root: Block) -> Iterator[Finding]:
    places = [p for p in walk(root, frozenset({"state_dict", "load_state_dict"})) if p.event.kind == "call"]
    for load in places:
        if load.event.method != "load_state_dict" or not load.event.args:
            continue
        state = load.event.args[0]
        for taken in places:
            taken_before = taken.event.method == "state_dict" and taken.order < load.order
            if not taken_before or taken.event.result != state or not isinstance(state, Symbol):
                continue
            if taken.loops and _same(taken, load) and _leaves(taken, load):
                yield _finding(taken, load)
                break


def _same(taken: Place, load: Place) -> bool:
    one: Value | None = taken.event.receiver
    other: Value | None = load.event.receiver
    return one is other if isinstance(one, (Thing, Instance)) else one == other and isinstance(one, Symbol)


def _leaves(taken: Place, load: Place) -> bool:
    """Whether the loop goes on changing the weights before the state is used."""
    inner = taken.loops[-1]
    return inner not in load.path and "step" in inner.methods


def _finding(taken: Place, load: Place) -> Finding:
    event = taken.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} keeps references to the live weights; "
        f"loading them back at line {load.event.line} changes nothing: copy.deepcopy is needed where they are kept",
        location(event),
        event.file.path,
        strength=Strength.DIRECT,
        measured={"kind": "reference", "load_line": load.event.line},
        patch=graph.copied_state(event.file, event.node),
    )
