"""Gradients are clipped after the step that used them.

`clip_grad_norm_` changes the gradients in place; it has to run between `backward` and `optimizer.step`. After the
step it clips what is about to be cleared: the update was made with the full gradient, and the printed norm looks as
if clipping worked.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import BACKWARD, Project, TrainingLoop, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import innermost, steps_inside
from traindx_tools.on_code.values import Symbol, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C135",
    name="clip-after-step",
    title="Gradients are clipped after the step",
    severity=Severity.HIGH,
    sees="clip_grad_norm_ or clip_grad_value_ after optimizer.step(), and none between backward and it.",
    matters="Clipping has no effect: one bad batch can still throw the weights off.",
    alike=("a clipping threshold that is too large",),
    confirm=("compare the size of an update with the clipped norm",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop that clips."""
    for loop in project.training_loops:
        for clip in loop.of("clip_grad_norm_", "clip_grad_value_"):
            yield from _judged(loop, clip)
    for event in project.calls("chain"):
        if event.name == "optax.chain":
            yield from _chained(event)


def _chained(event: Event) -> Iterator[Finding]:
    """A clip behind the optimizer in an optax chain bounds updates that Adam has normalised already."""
    names = [
        a.type if isinstance(a, Thing) else a.name.partition("@")[0] if isinstance(a, Symbol) else ""
        for a in event.args
    ]
    clips = [i for i, n in enumerate(names) if n in ("optax.clip_by_global_norm", "optax.clip")]
    optimizers = [i for i, n in enumerate(names) if n.rpartition(".")[2] in _ADAPTIVE]
    if clips and optimizers and min(clips) > max(optimizers):
        yield RULE.finding(
            f"optax.chain at {event.file.path}:{event.line} clips after {names[optimizers[-1]]}: what is bounded is "
            "the update, not the gradient",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            severity=Severity.MEDIUM,
            measured={"kind": "chain"},
        )


_ADAPTIVE = frozenset({"adam", "adamw", "nadam", "lamb", "rmsprop", "adagrad", "sgd", "radam", "amsgrad", "lion"})


def _judged(loop: TrainingLoop, clip: Place) -> Iterator[Finding]:
    inner = innermost(clip, loop)
    backwards = [p.order for p in loop.inside(inner, *BACKWARD)]
    steps = steps_inside(loop, inner)
    if not backwards or not steps or steps[-1].order > clip.order:
        return
    clips = [p.order for p in loop.inside(inner, "clip_grad_norm_", "clip_grad_value_")]
    step = steps[-1]
    if any(step.order < b < clip.order for b in backwards) or not any(b < step.order for b in backwards):
        return
    if any(c < step.order for c in clips):
        return
    event = clip.event
    yield RULE.finding(
        f"{event.method} at {event.file.path}:{event.line} clips the gradients after optimizer.step() at line "
        f"{step.event.line} has used them: clipping has no effect",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "clip", "step_line": step.event.line},
        patch=order.before_statement(event, step.event, "clip before the step"),
    )
