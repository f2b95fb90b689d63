"""The optimizer is made anew for every batch.

Adam's moments, momentum and step counts live in the optimizer. Made inside the loop over batches they start from zero
each time: every Adam step is its first one, of size lr for every weight whatever the gradient, and momentum never
builds up. A scheduler attached to it starts over as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import innermost, stepped
from traindx_tools.on_code.values import Instance, Symbol, Thing, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C151",
    name="optimizer-rebuilt",
    title="The optimizer is made anew in every iteration",
    severity=Severity.HIGH,
    sees="An optimizer with state, made inside the innermost loop that calls backward, over a model from outside.",
    matters="No moments, no momentum, no schedule: noisy progress that stalls early.",
    alike=("an inner loop of meta-learning that makes its own copy of the model",),
    confirm=('print(optimizer.state_dict()["state"][0]["step"]): it stays at 1',),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer that steps in a loop."""
    for loop in project.training_loops:
        results: dict[tuple[int, str], Place] = {}
        for place in loop.places:
            results.setdefault((id(place.event.result), place.event.name), place)
        for place in loop.of("step"):
            optimizer = stepped(place.event)
            if not isinstance(optimizer, Thing) or not _has_state(optimizer):
                continue
            inner = innermost(place, loop)
            made = results.get((id(optimizer), optimizer.type))
            if made is not None and _each_time(made, inner) and _outlives(optimizer, inner):
                event = made.event
                yield RULE.finding(
                    f"{optimizer.short} is made at {event.file.path}:{event.line} inside the loop at line {inner.line} "
                    "that steps it: its moments start from zero in every iteration",
                    location(event),
                    event.file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "rebuilt", "loop_line": inner.line},
                    patch=order.out_of_loop(event.file, event.node, inner.node) if event.file is inner.file else (),
                )


def _has_state(optimizer: Thing) -> bool:
    return optimizer.short != "SGD" or (number(optimizer.argument(2, "momentum")) or 0.0) > 0


def _each_time(made: Place, inner: Block) -> bool:
    if inner not in made.path or inner.kind != "loop" or inner.framework:
        return False
    after = made.path[made.path.index(inner) :]
    return not any(b.kind == "branch" or (b.kind == "loop" and b is not inner) for b in after)


def _outlives(optimizer: Thing, inner: Block) -> bool:
    """Whether the trained model exists before and after the iteration."""
    models = modules_of(optimizer)
    if not models:
        return False
    return all(
        inner not in m.born_in if isinstance(m, (Thing, Instance)) else isinstance(m, Symbol) and m.role != "iteration"
        for m in models
    )
