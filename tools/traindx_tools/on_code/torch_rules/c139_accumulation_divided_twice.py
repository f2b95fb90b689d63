"""The loss is divided by the accumulation steps twice.

`accelerator.backward(loss)` divides by `gradient_accumulation_steps` itself (accelerate's documented behaviour), and
so does the HF Trainer. A division by hand in front of it makes gradients, and with SGD the updates, smaller by that
factor once more; clipping thresholds and the logged loss are off as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import sent_backward, sites_of
from traindx_tools.on_code.values import Symbol, Thing, Value, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C139",
    name="accumulation-divided-twice",
    title="The loss is divided by the accumulation steps twice",
    severity=Severity.MEDIUM,
    sees="A loss divided by the number of accumulation steps before accelerator.backward.",
    matters="Gradients are too small by the number of accumulation steps: slow learning, clipping that never acts.",
    alike=("a learning rate that is too low",),
    confirm=("compare the gradient norm with and without the division",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every backward of an accelerator."""
    for loop in project.training_loops:
        for place in loop.backwards:
            accelerator = place.event.receiver
            if not isinstance(accelerator, Thing) or accelerator.short != "Accelerator":
                continue
            steps = accelerator.kwargs.get("gradient_accumulation_steps")
            written = _written(place.event, steps)
            if written is not None:
                yield _finding(written, place.event.line)
                continue
            sites = sites_of(sent_backward(place.event))
            for event in (p.event for p in loop.places if p.order < place.order):
                division = event.kind == "operation" and event.name == "/" and event.site in sites
                if division and _is_count(event.args[1], steps):
                    yield _finding(event, place.event.line)


def _written(event: Event, steps: Value | None) -> Event | None:
    """A division by the steps that is written in the call itself: accelerator.backward(loss / steps)."""
    given = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    if not isinstance(given, ast.BinOp) or not isinstance(given.op, ast.Div):
        return None
    known, count = number(steps), syntax(event.file).number(given.right)
    if count is None or known is None or known <= 1 or count != known:
        return None
    return Event("operation", "/", "/", given, event.file, event.function)


def _finding(event: Event, line: int) -> Finding:
    return RULE.finding(
        f"The loss is divided by the accumulation steps at {event.file.path}:{event.line} and again by "
        f"accelerator.backward() at line {line}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "twice", "backward_line": line},
        patch=graph.undivided(event.file, event.node),
    )


def _is_count(divisor: Value, steps: Value | None) -> bool:
    if isinstance(divisor, Symbol) and divisor.role == "attribute" and divisor.name == "gradient_accumulation_steps":
        return True
    if steps is None:
        return False
    known = number(steps)
    return divisor == steps if known is None else known > 1 and number(divisor) == known
