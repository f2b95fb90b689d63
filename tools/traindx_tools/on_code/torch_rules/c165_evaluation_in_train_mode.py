"""The model is evaluated in training mode.

The trained model runs under `no_grad` outside the training step, has Dropout or BatchNorm, and nobody in the project
ever calls `eval()` (a `train()` in every epoch changes nothing): dropout removes units in the evaluation, BatchNorm
normalises with the evaluation batch and updates its running statistics with it. A forward pass under `no_grad` inside
the training step (a target, a teacher) is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.layers import MODE_DEPENDENT
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import BACKWARD, Project, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import last_name, syntax
from traindx_tools.on_code.trace import Event, Place, walk
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.values import Instance, Tensor, Thing, Value, number, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C165",
    name="evaluation-in-train-mode",
    title="The model is evaluated in training mode",
    severity=Severity.HIGH,
    sees="A forward pass of the trained model under no_grad outside the training step, and no eval() in the project.",
    matters="Validation is noisy and worse than the model is; BatchNorm learns from validation data.",
    alike=("a real gap between training and validation", "Monte-Carlo dropout, which keeps it on purpose"),
    confirm=("assert not model.training in the evaluation", "evaluate twice: the two results differ"),
)

_ANOTHER_WAY = re.compile(r"\.eval\b|['\"]eval['\"]\s*\)|\.train\(\s*[^)\s]|\.training\s*=[^=]|deterministic"
                          r"|monte.?carlo|\bmc_?drop", re.IGNORECASE)  # fmt: skip
"""What sets the mode, or may: `train(False)`, an attribute, a flag. A bare `train()` never leaves training mode."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every forward pass without gradients of a model that is trained."""
    if any(f.mentions(_ANOTHER_WAY) for f in project.files):
        return
    trained = {m for loop in project.training_loops for p in loop.backwards
               if isinstance(v := sent_backward(p.event), Tensor) for m in v.models}  # fmt: skip
    seen: set[int] = set()
    hits: list[tuple[Place, Value, Thing]] = []
    for root in project.roots if trained else ():
        if root.framework:  # a hook of Lightning or of a Trainer, which sets the mode around it
            continue
        for place in walk(root, frozenset({"__call__"})):
            model = unwrap(place.event.receiver) if place.event.receiver is not None else None
            if place.event.grad is not False or id(model) not in trained or id(model) in seen or _in_step(place):
                continue
            layer = _dependent(model)
            if layer is not None and model is not None:
                seen.add(id(model))
                hits.append((place, model, layer))
    inner = {id(part) for _, model, _ in hits for part in submodules(model) if part is not model}
    yield from (_finding(p, layer) for p, model, layer in hits if id(model) not in inner and not _on_purpose(p.event))


def _in_step(place: Place) -> bool:
    """Whether the innermost loop around it also trains: a target or a statistic of the training step."""
    return bool(place.loops) and bool(BACKWARD & place.loops[-1].methods)


def _on_purpose(event: Event) -> bool:
    """Training mode is asked for (`train()` in a function that does not train), the output is drawn several times, or
    nobody uses it (running statistics are refreshed)."""
    code = syntax(event.file)
    scope = code.scope(event.node)
    called = [n.func.attr for n in below(scope) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and "train" in called and not BACKWARD & {*called}:
        return True
    if isinstance(code.parent(event.node), ast.Expr):
        return True
    for up in code.above(event.node):
        if isinstance(up, (ast.ListComp, ast.GeneratorExp)):
            return _again(up.generators[0].iter, up, event.node)
        if isinstance(up, (ast.For, ast.AsyncFor)):
            return _again(up.iter, up, event.node)
        if up is scope:
            break
    return bool(event.framework)


def _again(counted: ast.AST, loop: ast.AST, call: ast.AST) -> bool:
    """Whether a loop over a range repeats a call with the same inputs."""
    if not (isinstance(counted, ast.Call) and last_name(counted.func) == "range"):
        return False
    bound = {n.id for n in below(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not any(isinstance(n, ast.Name) and n.id in bound for n in below(call))


def _dependent(model: Value | None) -> Thing | None:
    for part in submodules(model) if isinstance(model, (Thing, Instance)) else []:
        if not isinstance(part, Thing) or not part.short.startswith(MODE_DEPENDENT) or "InstanceNorm" in part.short:
            continue
        if not ("Dropout" in part.short and number(part.argument(0, "p")) == 0):
            return part
    return None


def _finding(place: Place, layer: Thing) -> Finding:
    event = place.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} evaluates the trained model in training "
        f"mode: it has {layer.short} (made at {layer.site}) and eval() is called nowhere",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if place.loops else Severity.MEDIUM,
        measured={"kind": "train mode", "layer": layer.short},
        patch=order.in_eval_mode(event.file, event.node),
    )
