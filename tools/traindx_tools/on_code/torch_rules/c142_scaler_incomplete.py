"""A gradient scaler is used in part.

Three calls belong together: `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`. With
`optimizer.step()` in place of the second the update uses gradients that are 65,536 times too large (Adam's moments
hide the factor, weight decay, clipping and epsilon do not, SGD explodes), and overflows are not skipped. Without the
third the scale never changes: after one overflow every following step is skipped or none overflows and small
gradients stay lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import apart
from traindx_tools.on_code.training import is_optimizer, is_scaler, sent_backward
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C142",
    name="scaler-incomplete",
    title="A gradient scaler is used in part",
    severity=Severity.HIGH,
    sees="scale(loss).backward() followed by optimizer.step() without unscale_, or no update() after scaler.step().",
    matters="Updates with scaled gradients, or a loss scale that never adapts.",
    alike=("clipping before unscale_",),
    confirm=("print scaler.get_scale() and the gradient norm",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop that scales."""
    updates = any(is_scaler(e.receiver) for e in project.calls("update"))
    for loop in project.training_loops:
        scaled = [p for p in loop.backwards if _is_scaled(sent_backward(p.event))]
        steps = loop.of("step")
        if not scaled:
            continue
        if not any(p for p in loop.of("unscale_", "unscale_grads", "unscale")):
            for place in steps:
                event = place.event
                if is_optimizer(event.receiver) and not event.args and not all(apart(place, s) for s in scaled):
                    yield RULE.finding(
                        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} applies gradients that "
                        f"are still multiplied by the loss scale (scaled at line {scaled[0].event.line}): "
                        "scaler.step(optimizer) would divide them first and skip overflows",
                        location(event),
                        event.file.path,
                        bearing=Bearing.CAUSE,
                        measured={"kind": "step", "backward_line": scaled[0].event.line},
                        patch=order.stepped_by_scaler(event, scaled[0].event, updates),
                    )
                    break
        used = [p.event for p in steps if is_scaler(p.event.receiver)]
        if used and not updates:
            yield RULE.finding(
                f"The scaler that steps at {used[0].file.path}:{used[0].line} is never updated: without "
                "scaler.update() the loss scale stays at its first value and an overflow repeats for ever",
                location(used[0]),
                used[0].file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "update"},
                patch=order.updated(used[0]),
            )


def _is_scaled(value: object) -> bool:
    return isinstance(value, Tensor) and "scaled" in value.tags
