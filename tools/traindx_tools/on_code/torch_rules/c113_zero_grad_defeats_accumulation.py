"""Gradients are cleared although they are still needed.

Under gradient accumulation the optimizer steps every k micro-batches; a `zero_grad` in every micro-batch wipes what the
earlier ones gave, so each update uses the last micro-batch alone. Accelerate's prepared optimizer skips its `zero_grad`
between synchronisations, but `model.zero_grad()` knows nothing of that. A `zero_grad` between `backward` and `step`
leaves nothing to step with.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import (
    identity,
    innermost,
    is_optimizer,
    same,
    stepped,
    steps_inside,
    steps_of,
    text_of,
    unknown_steps,
)
from traindx_tools.on_code.values import Const, Symbol, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C113",
    name="zero-grad-defeats-accumulation",
    title="Gradients are cleared before they are used",
    severity=Severity.HIGH,
    sees="zero_grad in every micro-batch while the step is taken every k, or between backward and step.",
    matters="Updates use one micro-batch of k (or nothing): the accumulation has no effect.",
    alike=("a batch size that is too small", "sources of data that do not learn while the last one does"),
    confirm=("print the gradient norm after each micro-batch: it does not grow over the window",),
)


_SENDS = frozenset({"backward", "manual_backward"})
"""A condition that holds the backward pass too is no window: what is stepped with is made there."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        known: dict[tuple[int, object], _Around] = {}
        backwards: dict[int, list[Place]] = {}
        for clear in loop.of("zero_grad"):
            inner = innermost(clear, loop)
            if _conditions(clear, inner):
                continue
            key = id(inner), identity(clear.event.receiver)
            if key not in known:
                if id(inner) not in backwards:
                    called = loop.inside(inner, "backward", "manual_backward")
                    backwards[id(inner)] = [p for p in called if not _conditions(p, inner)]
                known[key] = _Around.of(loop, inner, clear.event.receiver, backwards[id(inner)])
            yield from _judged(clear, known[key])


@dataclass(frozen=True)
class _Around:
    """What a loop does with the gradients that one zero_grad clears, each in order."""

    backwards: list[Place]
    steps: list[Place]
    known: list[Place]
    """The steps of known optimizers among them."""
    window: list[Place]
    """Those that are taken only once in a number of iterations."""

    @classmethod
    def of(cls, loop: TrainingLoop, inner: Block, cleared: Value | None, backwards: list[Place]) -> _Around:
        """What belongs to the value on which zero_grad is called."""
        known = steps_inside(loop, inner)
        if cleared is not None and is_optimizer(cleared):
            known = steps_of(loop, inner, cleared)
        steps = sorted((*known, *unknown_steps(loop, inner)), key=lambda p: p.order)
        window = [p for p in steps if any(_every_so_often(b) and not _SENDS & b.methods for b in _conditions(p, inner))]
        return cls(backwards, steps, known, window)


def _judged(clear: Place, around: _Around) -> Iterator[Finding]:
    backwards, steps, window = around.backwards, around.steps, around.window
    if not backwards or not steps:
        return
    each_time = window and len(window) == len(steps)
    if each_time and any(_loop_of(b) is _loop_of(clear) for b in backwards):  # not at the top of an epoch
        yield _finding(
            clear,
            window[0],
            "in every micro-batch",
            f"the step at line {window[0].event.line} is taken only once "
            "a window: the gradients of all but the last micro-batch are lost",
        )
        return
    accumulate = _accumulating(backwards[0])
    if accumulate and not is_optimizer(clear.event.receiver) and not isinstance(clear.event.receiver, Symbol):
        yield _finding(
            clear,
            steps[0],
            "in every micro-batch",
            "accelerator.accumulate() gates only the prepared optimizer: "
            "the model's gradients are wiped in every micro-batch and each update uses the last one alone",
        )
        return
    before, after = _last_before(backwards, clear.order), _first_after(around.known, clear.order)
    if before is None or after is None or any(_SENDS & b.methods for b in after.branches):
        return
    again, used = _first_after(backwards, clear.order), _last_before(steps, clear.order)
    if (
        (again is None or again.order > after.order)
        and (used is None or used.order < before.order)
        and same(clear.event.receiver, stepped(after.event))
    ):
        yield _finding(
            clear,
            after,
            "between backward and step",
            f"it stands after backward() at line {before.event.line} and before the step at line "
            f"{after.event.line}: the step has no gradients",
            patched=False,
        )


def _last_before(places: list[Place], order: int) -> Place | None:
    at = bisect_left(places, order, key=lambda p: p.order)
    return places[at - 1] if at else None


def _first_after(places: list[Place], order: int) -> Place | None:
    at = bisect_right(places, order, key=lambda p: p.order)
    return places[at] if at < len(places) else None


def _conditions(place: Place, inner: Block) -> list[Block]:
    return [b for b in place.path[place.path.index(inner) :] if b.kind == "branch"] if inner in place.path else []


def _loop_of(place: Place) -> Block | None:
    return next((b for b in reversed(place.path) if b.kind == "loop"), None)


def _every_so_often(branch: Block) -> bool:
    """Whether a condition is true once in a number of iterations: it takes a remainder."""
    test = getattr(branch.node, "test", None)
    return test is not None and any(isinstance(n, ast.Mod) for n in ast.walk(test))


def _accumulating(place: Place) -> bool:
    for block in place.path:
        subject = block.subject
        if block.kind == "with" and isinstance(subject, Symbol) and subject.name.startswith("accumulate@"):
            owner = subject.parent
            if isinstance(owner, Thing) and owner.kwargs.get("gradient_accumulation_steps") not in (None, Const(1)):
                return True
    return False


def _finding(clear: Place, step: Place, kind: str, why: str, patched: bool = True) -> Finding:
    event = clear.event
    return RULE.finding(
        f"{text_of(event)}.zero_grad() at {event.file.path}:{event.line} clears gradients that are still needed: {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.CRITICAL if kind.startswith("between") else None,
        measured={"kind": kind, "step_line": step.event.line},
        patch=_patch(event, step.event) if patched else (),
    )


def _patch(clear: Event, step: Event) -> tuple[Patch, ...]:
    """Move the call behind the step."""
    file = clear.file
    old, new = patching.statement_of(file, clear.node), patching.statement_of(step.file, step.node)
    if (
        step.file is not file
        or old is None
        or new is None
        or not isinstance(old, ast.Expr)
        or old.lineno != old.end_lineno
    ):
        return ()
    name = ast.unparse(step.node.args[0]) if isinstance(step.node, ast.Call) and step.node.args else text_of(step)
    added = patching.insert_after(file, new, f"{name}.zero_grad()", "clear the gradients after the step that used them")
    if added is None:
        return ()
    gone = Patch(file.path, old.lineno, old.lineno, file.line(old.lineno), "", "do not clear them in every micro-batch")
    return gone, added
