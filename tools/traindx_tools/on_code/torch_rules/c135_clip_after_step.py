"""Gradients are clipped after the step that used them.

`clip_grad_norm_` changes the gradients in place; it has to run between `backward` and `optimizer.step`. After the
step it clips what is about to be cleared: the update was made with the full gradient, and the printed norm looks as
if clipping worked.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.training import innermost, stepped
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


def _judged(loop: TrainingLoop, clip: Place) -> Iterator[Finding]:
    inner = innermost(clip, loop)
    backwards = [p.order for p in loop.backwards if inner in p.path]
    steps = [p for p in loop.of("step") if stepped(p.event) is not None and inner in p.path]
    clips = [p.order for p in loop.of("clip_grad_norm_", "clip_grad_value_") if inner in p.path]
    before = [s for s in steps if s.order < clip.order]
    if not before or not backwards or any(s.order > clip.order for s in steps):
        return
    step = before[-1]
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
        strength=Strength.DIRECT,
        measured={"kind": "clip", "step_line": step.event.line},
    )
