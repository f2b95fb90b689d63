"""Gradients are never cleared between optimizer steps.

`backward` adds to `.grad`. Where no `zero_grad` (of this optimizer or of a model), no `p.grad = None` and no engine
that clears them itself runs in the loop that steps, each step uses the sum of the gradients of all batches so far:
the gradient norm grows with the step number and training diverges or oscillates. The rule follows helper functions,
closures, loops over several optimizers and accelerate's optimizers; a module's own `zero_grad` clears only what is
inside that module. It is silent where a framework owns the loop, and for gradient accumulation as long as something
clears the gradients in the loop around the step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.syntax import written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import clearing, guessed_optimizer, innermost, is_optimizer, same, stepped, text_of
from traindx_tools.on_code.values import Bag, Instance, Thing, Value
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
_PARTS = re.compile(r"\.(?:chunk|tensor_split)\((\w[\w.]*)")
"""`batch.chunk(4)`: a loop over as many parts as a window has."""
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
    done: dict[int, Value] = {}
    for place in loop.of("step"):
        optimizer = stepped(place.event)
        for each in [optimizer] if optimizer is not None else _each_of(place):
            if id(each) in done:
                continue
            done[id(each)] = each
            if innermost(place, loop) in getattr(each, "born_in", ()):
                continue  # made anew in every iteration, over tensors without gradients
            yield from _judged(loop, place, each, Bearing.CAUSE)


def _each_of(place: Place) -> list[Value]:
    """The optimizers that `for o in optimizers: o.step()` moves, where all of them are known."""
    node = place.event.node
    name = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    block = place.loops[-1] if place.loops else None
    if not isinstance(name, ast.Name) or block is None or not isinstance(block.node, ast.For):
        return []
    if not isinstance(block.node.target, ast.Name) or block.node.target.id != name.id:
        return []
    items = block.subject.items if isinstance(block.subject, Bag) else []
    return list(items) if items and all(is_optimizer(o) for o in items) else []


def _guessed(loop: TrainingLoop) -> Iterator[Finding]:
    place = guessed_optimizer(loop)
    if place is None or _each_of(place) or any(same(p.event.receiver, place.event.receiver) for p in loop.backwards):
        return  # an engine that has both backward and step clears the gradients itself
    if place.event.receiver is not None:
        yield from _judged(loop, place, place.event.receiver, Bearing.SIGN)


def _judged(loop: TrainingLoop, place: Place, optimizer: Value, bearing: Bearing) -> Iterator[Finding]:
    cleared = clearing(loop, optimizer)
    where = innermost(place, loop)
    left = _left_out(cleared, optimizer)
    if not cleared or left is not None:
        yield _finding(loop, place, where, bearing, "never", left)
        return
    elsewhere = where.kind == "loop" and not any(where in p.path for p in cleared)
    if bearing is Bearing.CAUSE and elsewhere and _steps_each_time(place, where):
        yield _finding(loop, place, where, bearing, "outside the loop that steps")


def _left_out(clearing: list[Place], optimizer: Value) -> Thing | Instance | None:
    """A module of the optimizer whose gradients nothing clears: all that is called is the zero_grad of others."""
    cleared = [p.event.receiver for p in clearing]
    modules = modules_of(optimizer)
    if modules is None or not cleared or not all(p.event.method == "zero_grad" for p in clearing):
        return None
    if not all(isinstance(m, (Thing, Instance)) and not is_optimizer(m) and submodules(m) for m in cleared):
        return None
    inside = {id(part) for m in cleared if m is not None for part in submodules(m)}
    return next((m for m in modules if isinstance(m, (Thing, Instance)) and id(m) not in inside
                 and not _within(m, inside)), None)  # fmt: skip


def _within(module: Value, inside: set[int]) -> bool:
    """Whether a part of the module is among what is cleared: then how much of it is, is not known."""
    return any(id(part) in inside for part in submodules(module))


def _steps_each_time(place: Place, where: Block) -> bool:
    """Whether it steps several times in the loop: always, or once a window (`if (i + 1) % window == 0`)."""
    inner = [b for b in place.path[place.path.index(where) + 1 :] if b.kind in ("branch", "loop")]
    return not inner or (len(inner) == 1 and _each_window(inner[0], where))


def _each_window(branch: Block, loop: Block) -> bool:
    """Whether a branch is taken again and again: every so many turns, and not after as many as the loop has."""
    test = branch.node.test if isinstance(branch.node, ast.If) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    for left, right in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(right, ast.Constant):
            parts = _PARTS.findall(written(loop.node.iter)) if isinstance(loop.node, ast.For) else []
            return "len" not in written(left.right) and "epoch" not in written(left) and (
                written(left.right) not in parts)  # fmt: skip
    return False


def _finding(loop: TrainingLoop, place: Place, where: Block, bearing: Bearing, kind: str,
             left: Thing | Instance | None = None) -> Finding:  # fmt: skip
    event = place.event
    name = text_of(event) if stepped(event) is None or event.receiver is stepped(event) else _scaled_name(event)
    first = next((p.event for p in loop.backwards if where in p.path), loop.backwards[0].event)
    said = "never cleared in the loop" if kind == "never" else "cleared only outside the loop"
    missing = "zero_grad() is not called"
    if left is not None:
        kind = left.short if isinstance(left, Thing) else left.klass.info.name
        missing = f"zero_grad() is called on other modules only, not on the {kind} made at {left.site}"
    return RULE.finding(
        f"{name}.step() at {event.file.path}:{event.line} uses gradients that are {said} at "
        f"{where.file.path}:{where.line}: "
        f"backward() at line {first.line} adds to them in every iteration and {missing}",
        location(event),
        event.file.path,
        bearing=bearing,
        measured={"kind": kind, "optimizer": name, "backward_line": first.line, "loop_line": where.line},
        patch=_patch(event, first, name, _in_a_window(place, where)),
    )


def _scaled_name(event: Event) -> str:
    node = event.node
    return event.file.segment(node.args[0]) if isinstance(node, ast.Call) and node.args else "optimizer"


def _in_a_window(place: Place, where: Block) -> bool:
    """Whether it steps once a window: then the gradients are cleared behind the step, not before each backward."""
    return where in place.path and any(b.kind == "branch" for b in place.path[place.path.index(where) :])


def _patch(step: Event, backward: Event, name: str, windowed: bool) -> tuple[Patch, ...]:
    file = step.file
    statement = patching.statement_of(file, step.node)
    if statement is None or not name.replace(".", "").replace("_", "").isalnum():
        return ()
    made: Patch | None = None
    summary = f"clear the gradients of {name} {'after every step' if windowed else 'in every iteration'}"
    other = patching.statement_of(backward.file, backward.node) if backward.file is file else None
    if other is not None and not windowed and other in patching.siblings(file, statement):
        made = patching.insert_before(file, other, f"{name}.zero_grad()", summary)
    else:
        made = patching.insert_after(file, statement, f"{name}.zero_grad()", summary)
    return (made,) if made is not None else ()
