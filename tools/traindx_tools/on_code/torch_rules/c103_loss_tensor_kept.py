"""Tensors that still hang on their autograd graph are kept over the steps of training.

`total += loss`, `losses.append(loss)`, `avg = 0.9 * avg + 0.1 * loss` or a meter that adds up tensors keep the graph of
every step alive: memory grows by a fixed amount a step until it runs out. What is kept must outlive the training loop's
iteration: a sum that is reset in each iteration, one that is itself sent backward, a bounded queue or a list that is
cleared in the loop are left alone. `.item()`, `.detach()`, `float(...)` and values under `no_grad` carry no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.binding import mixed_in
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, names_in, parameters, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import derives_from, sent_backward, sites_of
from traindx_tools.on_code.values import Bag, Instance, Symbol, Table, Tensor, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C103",
    name="loss-tensor-kept",
    title="Tensors with their graph are kept over training steps",
    severity=Severity.HIGH,
    sees="A tensor with a graph that is added to, or appended to, something that outlives the training step.",
    matters="The graph of every past step stays alive: memory grows linearly until the process is killed.",
    alike=("a data loader whose workers grow", "the caching allocator reserving more than it uses"),
    confirm=("watch memory over steps: a straight line", "replace the kept value by value.item() and watch again"),
)
_KEEPING = frozenset({"append", "extend", "appendleft", "add", "insert"})
_RESETS = frozenset({"clear", "pop", "popleft"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop, and at Lightning's hooks, around which there is one."""
    for loop in project.training_loops:
        yield from _in_loop(loop)
    for root in project.roots:
        for block in root.body:
            if isinstance(block, Block) and block.framework == "training_step":
                yield from _in_loop(TrainingLoop(root, (root, block), block))


def _in_loop(loop: TrainingLoop) -> Iterator[Finding]:
    losses = [v for v in (sent_backward(p.event) for p in loop.backwards) if v is not None]
    for place in loop.places:
        event = place.event
        if event.grad is False:
            continue
        if event.name in ("augmented.+", "blended"):
            kept = event.args[1]
            container = event.receiver
        elif (
            event.kind == "call"
            and event.method in _KEEPING
            and isinstance(event.receiver, (Bag, Symbol))
            and event.args
        ):
            kept, container = event.args[-1], event.receiver
        else:
            continue
        bearing = _attached(kept, losses)
        if bearing is None or _sent_itself(event, losses) or not _outlives(place, container, loop):
            continue
        if not _reset_inside(loop, place, container) and not _emptied_by(event):
            yield _finding(place, kept, bearing, loop)


def _attached(kept: Value, losses: list[Value]) -> Bearing | None:
    """Whether a graph hangs on the value: it says so, or it is (part of) what was sent backward."""
    if isinstance(kept, Bag) and kept.kind in ("tuple", "list") and kept.items:
        found = [_attached(v, losses) for v in kept.items]
        return next((f for f in found if f is not None), None)
    if isinstance(kept, Tensor):
        if kept.grad is False or kept.tags & {"gradient", "maybe_detached"}:
            return None
        if kept.grad and (kept.models or any(_shares(kept, v) for v in losses)):
            return Bearing.CAUSE
        return Bearing.CAUSE if any(v == kept or _shares(kept, v) for v in losses) else None
    if isinstance(kept, Symbol):
        return Bearing.CAUSE if any(derives_from(v, kept) for v in losses) else None
    return None


def _shares(kept: Tensor, loss: Value) -> bool:
    return kept.site is not None and kept.site in sites_of(loss)


def _sent_itself(event: Event, losses: list[Value]) -> bool:
    """Whether the sum, or something made of the list, is what is sent backward."""
    result = event.result
    if event.kind in ("augmented", "blended") and result is not None:
        return any(v == result or (isinstance(result, Tensor) and result.site in sites_of(v)) for v in losses)
    return False


def _outlives(place: Place, container: Value | None, loop: TrainingLoop) -> bool:
    """Whether a loop that trains lies between the making of the container and here."""
    event = place.event
    training = [b for b in place.loops if {"backward", "manual_backward"} & b.methods or b.framework]
    if isinstance(container, (Instance, Thing)) and event.kind in ("augmented", "blended"):
        return bool(training) and not _born_in(container, training[-1:])
    if isinstance(container, (Bag, Table)):
        if event.kind in ("augmented", "blended") and not isinstance(container, (Bag, Table)):
            return False
        return bool(training) and not _born_in(container, training[-1:])
    own = [b for b in place.loops if b.function is event.function][-event.crossing :] if event.crossing else []
    return any(b in training for b in own)


def _born_in(container: Bag | Table | Instance | Thing, loops: list[Block]) -> bool:
    """Whether it is made in one of the loops. A shared function was followed once, in the loop of another entry."""
    return any(b.node is loop.node for b in container.born_in for loop in loops)


def _reset_inside(loop: TrainingLoop, place: Place, container: Value | None) -> bool:
    """Whether the container is emptied or replaced somewhere in the innermost loop that trains."""
    training = [b for b in place.loops if {"backward", "manual_backward"} & b.methods or b.framework]
    inner = training[-1] if training else loop.block
    if _begun_anew(place.event, inner):
        return True
    attribute = _attribute_name(place.event)
    for other in loop.places:
        event = other.event
        if inner not in other.path or event is place.event or (
                event.kind == "store" and event.site == place.event.site):  # the blend's own assignment
            continue
        if event.kind == "store" and attribute and event.name == f"attribute.{attribute}":
            return True
        if event.kind == "delete" and (event.receiver is container or event.name == f"delete.{attribute}"):
            return True
        if (
            event.kind == "call"
            and event.method in _RESETS
            and (event.receiver is container or (isinstance(container, Symbol) and event.receiver == container))
        ):
            return True
        if (
            event.kind == "call"
            and event.method in ("stack", "cat", "sum")
            and event.args
            and event.args[0] is container
        ):
            return True
    return False


def _emptied_by(event: Event) -> bool:
    """Whether another method of the same class empties the attribute: who owns the object calls it between steps."""
    code, name = syntax(event.file), _attribute_name(event)
    owner = code.owner(event.function.node) if event.function is not None and name is not None else None
    if owner is None or event.function is None:
        return False
    others = [m for m in owner.body if isinstance(m, ast.FunctionDef) and m is not event.function.node]
    own = f"self.{name}"
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "clear"
        and written(n.func.value) == own for m in others for n in below(m))  # fmt: skip


def _begun_anew(event: Event, loop: Block) -> bool:
    """Whether the loop binds the name to something else somewhere: `if (i + 1) % window == 0: running = 0`."""
    node = event.node
    kept = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else (
        node.target if isinstance(node, ast.AugAssign) else node.targets[0] if isinstance(node, ast.Assign) else None)
    if not isinstance(kept, ast.Name) or event.file is not loop.file:
        return False
    code = syntax(event.file)
    return any(any(up is loop.node for up in code.above(statement)) and kept.id not in names_in(value)
               for statement, value in code.bindings(kept) if statement is not node)  # fmt: skip


def _attribute_name(event: Event) -> str | None:
    node: ast.AST = event.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    elif isinstance(node, ast.AugAssign):
        node = node.target
    elif isinstance(node, ast.Assign):
        node = node.targets[0]
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else None


def _finding(place: Place, kept: Value, bearing: Bearing, loop: TrainingLoop) -> Finding:
    event = place.event
    node = event.node
    said, expression = _written(event)
    retained = any(p.event.kwargs.get("retain_graph") is not None for p in loop.backwards)
    where = f"{event.file.path}:{event.line}"
    patch = _patch(event, expression) or _where_passed(place)
    del node, kept
    return RULE.finding(
        f"{said} at {where} keeps a tensor that still carries its autograd graph, in every training step; "
        f"nothing detaches it" + (" (and retain_graph keeps the buffers as well)" if retained else ""),
        location(event),
        event.file.path,
        bearing=bearing,
        measured={"kind": "kept", "expression": said, "retain_graph": retained},
        patch=patch,
    )


def _written(event: Event) -> tuple[str, ast.expr | None]:
    node = event.node
    if isinstance(node, ast.Call):
        return event.file.segment(node), node.args[-1] if node.args else None
    if isinstance(node, ast.AugAssign):
        return event.file.segment(node), node.value
    if event.kind == "blended":
        return event.file.segment(node), _local(event, node)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target = ast.unparse(node.targets[0])
        other = node.value.right if ast.unparse(node.value.left) == target else node.value.left
        return event.file.segment(node), other
    return event.file.segment(node), None


def _local(event: Event, node: ast.AST) -> ast.expr | None:
    """What is mixed in, unless it was passed in: a caller may pass numbers."""
    mixed = mixed_in(node) if isinstance(node, ast.Assign) else []
    arguments = event.function.node.args if event.function is not None else None
    given = {a.arg for a in below(arguments) if isinstance(a, ast.arg)} if arguments is not None else set()
    return mixed[-1] if mixed and not (isinstance(mixed[-1], ast.Name) and mixed[-1].id in given) else None


def _patch(event: Event, expression: ast.expr | None) -> tuple[Patch, ...]:
    if not isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript)):
        return ()
    made = patching.replace_text(
        event.file, expression, f"{ast.unparse(expression)}.detach()", "keep the value, not its graph"
    )
    return (made,) if made is not None else ()


def _where_passed(place: Place) -> tuple[Patch, ...]:
    """What is mixed in is a parameter: the value detached in the call that passes it."""
    event, function = place.event, place.event.function
    mixed = mixed_in(event.node) if event.kind == "blended" and isinstance(event.node, ast.Assign) else []
    called = next((b for b in reversed(place.path) if b.kind == "call"), None)
    if not mixed or not isinstance(mixed[-1], ast.Name) or function is None or called is None:
        return ()
    if not isinstance(called.node, ast.Call) or isinstance(function.node, ast.Lambda):
        return ()
    names = [n for n in parameters(function.node) if n not in ("self", "cls")]
    given = argument(called.node, names.index(mixed[-1].id), mixed[-1].id) if mixed[-1].id in names else None
    if not isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return ()
    change = Change(called.file, "keep the value, not its graph")
    return change.insert(given.end_lineno or 0, given.end_col_offset or 0, ".detach()").patches()
