"""Gradients are never cleared between optimizer steps.

`backward` adds to `.grad`. Where no `zero_grad` (of this optimizer or of a model), no `p.grad = None` and no engine
that clears them itself runs in the loop that steps, each step uses the sum of the gradients of all batches so far:
the gradient norm grows with the step number and training diverges or oscillates. The rule follows helper functions,
closures and accelerate's optimizers; it is silent where a framework owns the loop, and for gradient accumulation as
long as something clears the gradients in the loop around the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import clears, guessed_optimizer, innermost, same, stepped, text_of
from traindx_tools.on_code.values import Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C101",
    name="zero-grad-missing",
    title="Gradients are never cleared between steps",
    severity=Severity.HIGH,
    sees="A loop that calls backward() and steps an optimizer, and nothing in it that clears the gradients.",
    matters="Every step uses the sum of all gradients so far; the effective step grows without bound.",
    alike=("a learning rate that is too high", "gradient accumulation over a window, which clears once a window"),
    confirm=(
        "log the gradient norm: it grows about linearly with the step number",
        "grep the loop for zero_grad or `.grad = None`",
    ),
)
_ENGINES = ("deepspeed.", "lightning.", "composer.", "colossalai.")


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        manual = any(p.event.method == "manual_backward" for p in loop.backwards)
        if (loop.block.framework and not manual) or _managed(loop):
            continue
        yield from _known(loop)
        yield from _guessed(loop)


def _managed(loop: TrainingLoop) -> bool:
    owners = [p.event.receiver for p in loop.backwards]
    return any(isinstance(o, Thing) and (o.type.startswith(_ENGINES) or o.state.get("engine")) for o in owners)


def _known(loop: TrainingLoop) -> Iterator[Finding]:
    done: list[Value] = []
    for place in loop.of("step"):
        optimizer = stepped(place.event)
        if optimizer is None or any(optimizer is d for d in done):
            continue
        done.append(optimizer)
        if innermost(place, loop) in getattr(optimizer, "born_in", ()):
            continue  # made anew in every iteration, over tensors without gradients
        yield from _judged(loop, place, optimizer, Strength.DIRECT)


def _guessed(loop: TrainingLoop) -> Iterator[Finding]:
    place = guessed_optimizer(loop)
    if place is None or any(same(p.event.receiver, place.event.receiver) for p in loop.backwards):
        return  # an engine that has both backward and step clears the gradients itself
    if place.event.receiver is not None:
        yield from _judged(loop, place, place.event.receiver, Strength.CIRCUMSTANTIAL)


def _judged(loop: TrainingLoop, place: Place, optimizer: Value, strength: Strength) -> Iterator[Finding]:
    clearing = [p for p in loop.places if clears(p.event, optimizer)]
    where = innermost(place, loop)
    if not clearing:
        yield _finding(loop, place, where, strength, "never")
        return
    elsewhere = where.kind == "loop" and not any(where in p.path for p in clearing)
    if strength is Strength.DIRECT and elsewhere and _steps_each_time(place, where):
        yield _finding(loop, place, where, strength, "outside the loop that steps")


def _steps_each_time(place: Place, where: Block) -> bool:
    inner = place.path[place.path.index(where) + 1 :]
    return not any(b.kind in ("branch", "loop") for b in inner)


def _finding(loop: TrainingLoop, place: Place, where: Block, strength: Strength, kind: str) -> Finding:
    event = place.event
    name = text_of(event) if stepped(event) is None or event.receiver is stepped(event) else _scaled_name(event)
    first = next((p.event for p in loop.backwards if where in p.path), loop.backwards[0].event)
    said = "never cleared in the loop" if kind == "never" else "cleared only outside the loop"
    return RULE.finding(
        f"{name}.step() at {event.file.path}:{event.line} uses gradients that are {said} at "
        f"{where.file.path}:{where.line}: "
        f"backward() at line {first.line} adds to them in every iteration and zero_grad() is not called",
        location(event),
        event.file.path,
        strength=strength,
        measured={"kind": kind, "optimizer": name, "backward_line": first.line, "loop_line": where.line},
        patch=_patch(event, first, name),
    )


def _scaled_name(event: Event) -> str:
    import ast

    node = event.node
    return event.file.segment(node.args[0]) if isinstance(node, ast.Call) and node.args else "optimizer"


def _patch(step: Event, backward: Event, name: str) -> tuple[Patch, ...]:
    file = step.file
    statement = patching.statement_of(file, step.node)
    if statement is None or not name.replace(".", "").replace("_", "").isalnum():
        return ()
    made: Patch | None = None
    summary = f"clear the gradients of {name} in every iteration"
    other = patching.statement_of(backward.file, backward.node) if backward.file is file else None
    if other is not None and other in patching.siblings(file, statement):
        made = patching.insert_before(file, other, f"{name}.zero_grad()", summary)
    else:
        made = patching.insert_after(file, statement, f"{name}.zero_grad()", summary)
    return (made,) if made is not None else ()
