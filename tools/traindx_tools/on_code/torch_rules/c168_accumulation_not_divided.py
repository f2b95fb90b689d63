"""The loss is not divided by the accumulation steps.

`backward` adds up gradients. Over a window of k micro-batches whose losses are means, the sum is k times the gradient
of one large batch: the same as a k times larger learning rate for SGD, and k times larger norms in front of a clip.
The rule asks that the window is written as a remainder (`(i + 1) % k`), and that nothing in the loop divides by k.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import names_in, syntax, written
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.training import clears, innermost, stepped
from traindx_tools.on_code.values import Instance, Symbol, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C168",
    name="accumulation-not-divided",
    title="The loss is not divided by the accumulation steps",
    severity=Severity.MEDIUM,
    sees="A step and a clear under `(i + 1) % k == 0`, and no division by k of the loss that is sent backward.",
    matters="Gradients are k times too large: a clip bites k times harder, SGD's steps are k times longer.",
    alike=("a learning rate that was chosen for the sum", "a loss that is a sum over the batch, normalised elsewhere"),
    confirm=("compare the gradient norm at k = 1 and k = 8: it grows by the factor 8",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every step under a remainder."""
    for loop in project.training_loops:
        if any(_divides_itself(p) for p in loop.backwards):
            continue
        done: set[int] = set()
        for step in loop.of("step"):
            optimizer = stepped(step.event)
            if optimizer is None or id(optimizer) in done:
                continue
            done.add(id(optimizer))
            count = _window(step)
            if count is None or not any(clears(p.event, optimizer) for p in loop.places if _shares(p, step)):
                continue
            if {"backward", "manual_backward"} & step.branches[-1].methods:
                continue  # the pass that it steps with stands under the condition too
            inner = innermost(step, loop)
            backward = next((p for p in loop.backwards if inner in p.path and not _shares(p, step)), None)
            if backward is not None and not _divided(loop, backward, step, count):
                yield _finding(backward, step, count)


def _divides_itself(place: Place) -> bool:
    owner = place.event.receiver
    if place.event.method == "manual_backward" or isinstance(owner, (Instance, Symbol)):
        return place.event.method == "manual_backward" or bool(place.event.args)
    return isinstance(owner, Thing) and owner.short not in ("GradScaler",)


def _window(step: Place) -> ast.expr | None:
    """k of the condition `... % k == 0` nearest to the step."""
    for block in reversed(step.branches):
        test = block.node.test if isinstance(block.node, ast.If) else None
        for node in below(test) if test is not None else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                return node.right
    return None


def _shares(place: Place, step: Place) -> bool:
    return bool(step.branches) and step.branches[-1] in place.path


def _divided(loop: TrainingLoop, backward: Place, step: Place, count: ast.expr) -> bool:
    """Whether anything between the top of the loop and the step divides, or sums up, or is not seen."""
    file = backward.event.file
    bodies: list[ast.AST] = [p.event.function.node for p in (backward, step) if p.event.function is not None]
    for body in bodies or [file.tree]:
        for node in below(body):
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Div, ast.Mult)):
                right = node.right if isinstance(node, ast.BinOp) else node.value
                if written(right) == written(count) or names_in(count) & names_in(right):
                    return True
                target = node.left if isinstance(node, ast.BinOp) else node.target
                if isinstance(node.op, ast.Div) and "loss" in written(target).lower():
                    return True
            if isinstance(node, ast.keyword) and node.arg == "reduction":
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SCALES:
                return True
    return "reduction" in file.text or syntax(file).number(count) == 1


_SCALES = frozenset({"div", "div_", "mul_", "sum", "divide", "true_divide"})


def _finding(backward: Place, step: Place, count: ast.expr) -> Finding:
    event = backward.event
    return RULE.finding(
        f"The loss sent backward at {event.file.path}:{event.line} is not divided by {written(count)}, over which the "
        f"step at line {step.event.line} accumulates: the gradients are that many times larger",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "window", "steps": written(count), "step_line": step.event.line},
    )
