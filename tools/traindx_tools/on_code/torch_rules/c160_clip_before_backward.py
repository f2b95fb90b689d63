"""Gradients are clipped before they are there.

`clip_grad_norm_` works on what `.grad` holds at that moment. Called before `backward`, it clips the zeros that
`zero_grad` left (or nothing at all), and the gradients that the step uses are never bounded. The norm that it returns
is 0 in every step.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import BACKWARD, Project, TrainingLoop, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.training import innermost, steps_inside
from traindx_tools.rules import Rule

RULE = Rule(
    id="C160",
    name="clip-before-backward",
    title="Gradients are clipped before backward",
    severity=Severity.HIGH,
    sees="clip_grad_norm_ or clip_grad_value_ before the first backward() of the iteration, and none after it.",
    matters="Clipping has no effect: one bad batch can throw the weights off although the code clips.",
    alike=("a clipping threshold that is too large", "a clip after the step"),
    confirm=("print what clip_grad_norm_ returns: it is 0 in every step",),
)
_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop that clips."""
    for loop in project.training_loops:
        for clip in loop.of(*_CLIPS):
            yield from _judged(loop, clip)


def _judged(loop: TrainingLoop, clip: Place) -> Iterator[Finding]:
    inner = innermost(clip, loop)
    backwards = loop.inside(inner, *BACKWARD)
    steps = steps_inside(loop, inner)
    clears = loop.inside(inner, "zero_grad")
    if not backwards or not steps or not clears or backwards[0].order < clip.order:
        return
    after = [s for s in steps if s.order > backwards[0].order]
    between = [s for s in steps if clip.order < s.order < backwards[0].order]
    others = [c for c in loop.of(*_CLIPS) if inner in c.path and c.order > backwards[0].order]
    if not after or between or others:
        return
    event = clip.event
    yield RULE.finding(
        f"{event.method} at {event.file.path}:{event.line} runs before backward() at line {backwards[0].event.line}: "
        f"it clips gradients that were just cleared, and the step at line {after[0].event.line} uses unclipped ones",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "clip", "backward_line": backwards[0].event.line, "step_line": after[0].event.line},
        patch=order.behind_backward(event, backwards[0].event, "clip what backward has computed"),
    )
