"""Gradients are clipped while they are still multiplied by the loss scale.

With a `GradScaler` the gradients after `scaler.scale(loss).backward()` are larger by the scale (65536 at first). A clip
before `scaler.unscale_(optimizer)` compares that with the norm meant for true gradients: every step is clipped to
max_norm / scale, and training hardly moves. The same holds for the steps in which the unscaling is left out: where it
stands under a condition on the step number (it is only wanted for a log line) and the clip does not. Accelerate's
`clip_grad_norm_` unscales by itself and is left alone, and so is a bound that is multiplied by the scale
(`max_norm * scaler.get_scale()`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import innermost, is_false, is_scaler, sent_backward
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C106",
    name="clip-before-unscale",
    title="Gradients are clipped before they are unscaled",
    severity=Severity.HIGH,
    sees=(
        "clip_grad_norm_ or clip_grad_value_ between scaler.scale(loss).backward() and scaler.step(), without unscale_."
    ),
    matters="The clip sees gradients larger by the loss scale: every step shrinks to max_norm / scale.",
    alike=("a learning rate that is too small", "vanishing gradients"),
    confirm=(
        "print the norm that clip_grad_norm_ returns: it is thousands of times too large",
        "call scaler.unscale_(optimizer) before the clip and compare",
    ),
)
_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "dispatch_clip_grad", "adaptive_clip_grad")


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop whose loss is scaled."""
    for loop in project.training_loops:
        scaled = [p for p in loop.backwards if _scaled(p.event)]
        if not scaled:
            continue
        unscales = loop.of("unscale_", "unscale_gradients", "unscale_grads")
        for clip in loop.of(*_CLIPS):
            if clip.event.receiver is None or isinstance(clip.event.receiver, Symbol):
                yield from _judged(loop, clip, scaled, unscales)


def _scaled(event: Event) -> bool:
    value = sent_backward(event)
    if isinstance(value, Tensor):
        return "scaled" in value.tags
    return isinstance(value, Symbol) and value.role == "call" and value.name.startswith("scale")


def _judged(loop: TrainingLoop, clip: Place, scaled: list[Place], unscales: list[Place]) -> Iterator[Finding]:
    inner: Block = innermost(clip, loop)
    before = [p for p in scaled if p.order < clip.order and inner in p.path]
    between = [u for u in unscales if before and before[-1].order < u.order < clip.order]
    if not before or not all(_now_and_then(u, clip) for u in between):
        return
    step = next((p for p in loop.of("step") if p.order > clip.order and p.event.args), None)
    if step is None or not _steps_scaler(step.event) or _disabled(step.event.receiver):
        return
    event = clip.event
    if _in_scaled_units(event):
        return
    why = f"no unscale_ stands between backward() at line {before[-1].event.line} and it"
    if between:
        why = (f"the unscale_ at {between[0].event.site} runs in some of the steps only, the clip in all of them")
    yield RULE.finding(
        f"{event.method} at {event.file.path}:{event.line} clips gradients that are still multiplied by the loss "
        f"scale: {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if is_scaler(step.event.receiver) else Bearing.SIGN,
        measured={"kind": "now and then" if between else "clip", "backward_line": before[-1].event.line,
                  "step_line": step.event.line},
        patch=() if between else _patch(event, step.event),
    )


def _now_and_then(unscale: Place, clip: Place) -> bool:
    """Whether an unscaling stands under a condition on the step number, and the clip under none."""
    shared = [b for b in unscale.path if b in clip.path]
    return _conditioned(unscale, shared) and not _conditioned(clip, shared)


def _conditioned(place: Place, shared: list[Block]) -> bool:
    """Whether the place, or a call on the way to it, stands under a condition on the step number."""
    ways = [(b.file, b.node) for b in place.path if b.kind == "call" and b not in shared]
    return any(isinstance(up, (ast.If, ast.IfExp)) and _counts(syntax(file), up.test)
               for file, node in [*ways, (place.event.file, place.event.node)] for up in syntax(file).above(node))


def _counts(code: Syntax, test: ast.expr) -> bool:
    """Whether a condition asks for a remainder: `step % every == 0`, by name or in place."""
    texts = [test, *(v for n in below(test) if isinstance(n, ast.Name) for _, v in code.bindings(n))]
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for t in texts for n in below(t))


def _in_scaled_units(clip: Event) -> bool:
    """Whether the bound itself is multiplied by the loss scale."""
    node, code = clip.node, syntax(clip.file)
    bound = argument(node, 1, "max_norm", "clip_value") if isinstance(node, ast.Call) else None
    if bound is None:
        return False
    texts = [written(bound), *(written(v) for n in below(bound) for _, v in code.bindings(n))]
    return any("get_scale" in t or "loss_scale" in t for t in texts)


def _steps_scaler(event: Event) -> bool:
    return is_scaler(event.receiver) or isinstance(event.receiver, Symbol)


def _disabled(scaler: Value | None) -> bool:
    return isinstance(scaler, Thing) and is_false(scaler.kwargs.get("enabled"))


def _patch(clip: Event, step: Event) -> tuple[Patch, ...]:
    node = step.node
    if step.file is not clip.file or step.function is not clip.function or not isinstance(node, ast.Call):
        return ()
    statement = patching.statement_of(clip.file, clip.node)
    if statement is None or not isinstance(node.func, ast.Attribute) or not node.args:
        return ()
    code = f"{ast.unparse(node.func.value)}.unscale_({ast.unparse(node.args[0])})"
    made = patching.insert_before(clip.file, statement, code, "unscale the gradients before they are clipped")
    return (made,) if made is not None else ()
