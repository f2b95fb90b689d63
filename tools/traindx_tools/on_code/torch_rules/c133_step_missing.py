"""Gradients are computed and never applied.

A loop calls `backward` and clears the gradients of an optimizer, and nobody calls that optimizer's `step`, neither
directly nor through a scaler: the weights stay as they are, whatever the gradients say.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.training import identity, is_optimizer, stepped, text_of
from traindx_tools.on_code.values import Instance, Symbol, Thing, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C133",
    name="step-missing",
    title="The optimizer is never stepped",
    severity=Severity.CRITICAL,
    sees="A training loop that clears an optimizer's gradients and never steps it.",
    matters="Nothing is learned.",
    alike=("a learning rate of 0", "an optimizer over the wrong parameters"),
    confirm=("compare a parameter before and after an iteration",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    moved = _moved(project)
    for loop in project.training_loops:
        seen: set[object] = set()
        others = _other_steps(loop)
        for place in loop.of("zero_grad"):
            optimizer = place.event.receiver
            if not isinstance(optimizer, Thing) or not is_optimizer(optimizer) or optimizer.state.get("annotation"):
                continue
            key = identity(optimizer)
            if key in seen:
                continue
            seen.add(key)
            if id(unwrap(optimizer)) not in moved and others is not None and key not in others:
                event = place.event
                yield RULE.finding(
                    f"{text_of(event)} is cleared at {event.file.path}:{event.line} in the training loop at line "
                    f"{loop.block.line} and step() is never called on it: the gradients are thrown away",
                    location(event),
                    event.file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "step", "loop_line": loop.block.line},
                    patch=order.step_after(loop.backwards[0].event, text_of(event)),
                )


def _moved(project: Project) -> frozenset[int]:
    """The objects that a call of step anywhere moves, or gets."""
    given = [v for event in project.calls("step") for v in (stepped(event), *event.args) if v is not None]
    return frozenset(id(unwrap(v)) for v in given)


def _other_steps(loop: TrainingLoop) -> frozenset[object] | None:
    """What calls in the loop are given, which may step it; None where something unknown is stepped there."""
    in_loop = [p.event for p in loop.places if p.event.kind == "call" and p.event.method != "zero_grad"]
    if any(isinstance(e.receiver, Symbol) and e.method == "step" for e in in_loop):
        return None
    return frozenset(identity(a) for e in in_loop for a in e.args if isinstance(a, (Thing, Instance)))
