"""A model is evaluated while autograd records.

Between `eval()` and the end of the evaluation the model runs without `no_grad` or `inference_mode`: graphs are built
for nothing, which costs memory and time; where outputs or losses are collected, their graphs stay alive and memory
runs out. Code that needs gradients in eval mode (attacks, saliency, anything that calls backward or `autograd.grad`)
is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import losses
from traindx_tools.on_code.trace import Block, Event, Place, walk
from traindx_tools.on_code.training import is_false, same, text_of
from traindx_tools.on_code.values import Bag, Instance, Ref, Symbol, Tensor, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C105",
    name="evaluation-with-gradients",
    title="Evaluation builds autograd graphs",
    severity=Severity.MEDIUM,
    sees="A model in eval mode that is called while autograd records, with no backward in the same function.",
    matters="Memory and time for graphs that nobody uses; out of memory where outputs are collected.",
    alike=("a validation batch size that is too large",),
    confirm=(
        "print torch.is_grad_enabled() in the evaluation",
        "wrap it in torch.no_grad() and compare the peak memory",
    ),
)
_GRADIENTS = frozenset({"backward", "grad", "manual_backward", "requires_grad_", "vjp", "jacobian", "hessian", "step"})
_KEEPING = frozenset({"append", "extend", "cat"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every function in which a model is put into eval mode."""
    seen: set[tuple[str, int]] = set()
    for root in project.roots:
        if "eval" not in root.methods:
            continue
        for place in walk(root, frozenset({"eval"})):
            body = place.path[-1] if place.event.kind == "call" else None
            scope = _scope(place) if body is not None else None
            if scope is None or (place.event.file.path, place.event.line) in seen or _GRADIENTS & scope.methods:
                continue
            found = _judged(place, scope)
            if found is not None:
                seen.add((place.event.file.path, place.event.line))
                yield found


def _scope(place: Place) -> Block | None:
    """The body of the function that calls eval()."""
    return next((b for b in reversed(place.path) if b.kind == "call"), None)


def _judged(place: Place, scope: Block) -> Finding | None:
    model = place.event.receiver
    if model is None or place.event.args or (scope.function is not None and scope.function.unknown_decorator):
        return None
    certain = isinstance(unwrap(model), (Thing, Instance))
    if _of_flax(unwrap(model)) or (not certain and _only_flax(place.event.file.text)):
        return None
    forward: Event | None = None
    kept: Event | None = None
    for inner in scope.places[_first_of(scope, place.event) + 1 :]:
        event = inner.event
        if event is place.event or event.kind != "call":
            continue
        if event.method == "train" and same(event.receiver, model) and not (event.args and is_false(event.args[0])):
            break
        if event.method == "__call__" and same(event.receiver, model) and event.grad is True and _attached(event):
            forward = forward or event
        elif (forward is not None and event.method in _KEEPING and event.args and _carries(event.args[-1], forward)
                and next(b for b in reversed(inner.path) if b is scope or b.kind == "call") is scope):  # fmt: skip
            kept = kept or event
    if forward is None or not any(b.kind == "loop" for b in _path_to(scope, forward)):
        return None
    at = kept or forward
    direct = certain and scope.function is not None
    said = f" and {at.file.segment(at.node)} at line {at.line} keeps the graphs" if kept else ""
    return RULE.finding(
        f"{text_of(forward, 'callee')}(...) at {forward.file.path}:{forward.line} runs in eval mode while "
        f"autograd records{said}: "
        "no no_grad() or inference_mode() is around it",
        location(at if kept else forward),
        forward.file.path,
        bearing=Bearing.CAUSE if direct else Bearing.SIGN,
        severity=Severity.HIGH if kept and direct else Severity.MEDIUM if kept or direct else Severity.LOW,
        measured={
            "kind": "kept" if kept else "built",
            "model": text_of(place.event),
            "function": scope.function.qualified if scope.function else None,
        },
        patch=losses.without_gradients(scope.function.file, scope.function.node)
        if direct and scope.function is not None
        else (),
    )


def _of_flax(model: Value) -> bool:
    """Whether it is a module of flax.nnx, which has modes and no graphs that a call builds."""
    if isinstance(model, Thing):
        return model.type.startswith("flax.")
    classes = model.klass.info.lineage() if isinstance(model, Instance) else ()
    names = [b.name for c in classes for b in c.bases if isinstance(b, Ref)]
    return any(n.startswith("flax.") for n in names)


def _only_flax(text: str) -> bool:
    """Whether a file that does not say what its model is imports flax and no torch."""
    return "flax" in text and "torch" not in text


def _first_of(scope: Block, event: Event) -> int:
    """Where an event happens first in a block."""
    known: dict[int, int] | None = scope.__dict__.get("_first_of")
    if known is None:
        known = scope.__dict__["_first_of"] = {}
        for place in scope.places:
            known.setdefault(id(place.event), place.order)
    return known.get(id(event), len(scope.places))


def _attached(event: Event) -> bool:
    result = event.result
    if isinstance(result, Tensor):
        return result.grad is not False
    return not (isinstance(result, Bag) and all(isinstance(i, Tensor) and i.grad is False for i in result.items))


def _carries(value: object, forward: Event) -> bool:
    if isinstance(value, Tensor):
        return value.grad is True
    return isinstance(value, Symbol) and value == forward.result


def _path_to(scope: Block, event: Event) -> tuple[Block, ...]:
    return scope.places[_first_of(scope, event)].path
