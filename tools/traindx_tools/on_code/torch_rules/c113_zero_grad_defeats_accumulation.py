"""Gradients are cleared although they are still needed.

Under gradient accumulation the optimizer steps every k micro-batches; a `zero_grad` in every micro-batch wipes what the
earlier ones gave, so each update uses the last micro-batch alone. Accelerate's prepared optimizer skips its `zero_grad`
between synchronisations, but `model.zero_grad()` knows nothing of that. A `zero_grad` between `backward` and `step`
leaves nothing to step with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import innermost, is_optimizer, same, stepped, text_of
from traindx_tools.on_code.values import Const, Symbol, Thing
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


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        for clear in loop.of("zero_grad"):
            yield from _judged(loop, clear)


def _judged(loop: TrainingLoop, clear: Place) -> Iterator[Finding]:
    inner = innermost(clear, loop)
    if _conditions(clear, inner):
        return
    backwards = [p for p in loop.backwards if inner in p.path and not _conditions(p, inner)]
    steps = [
        p
        for p in loop.of("step")
        if inner in p.path
        and (stepped(p.event) is not None or isinstance(p.event.receiver, Symbol))
        and _belongs(clear.event, p.event)
    ]
    if not backwards or not steps:
        return
    window = [p for p in steps if any(_every_so_often(b) for b in _conditions(p, inner))]
    once_each = any(_loop_of(b) is _loop_of(clear) for b in backwards)  # not at the top of an epoch
    if window and len(window) == len(steps) and once_each:
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
    before = [b for b in backwards if b.order < clear.order]
    after = [s for s in steps if s.order > clear.order and stepped(s.event) is not None]
    if (
        before
        and after
        and not any(clear.order < b.order < after[0].order for b in backwards)
        and not any(before[-1].order < s.order < clear.order for s in steps)
        and same(clear.event.receiver, stepped(after[0].event))
    ):
        yield _finding(
            clear,
            after[0],
            "between backward and step",
            f"it stands after backward() at line {before[-1].event.line} and before the step at line "
            f"{after[0].event.line}: the step has no gradients",
            patched=False,
        )


def _belongs(clear: Event, step: Event) -> bool:
    return not is_optimizer(clear.receiver) or same(clear.receiver, stepped(step)) or stepped(step) is None


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
        strength=Strength.DIRECT,
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
