"""An optimizer steps with gradients of another player's loss.

In a game of two optimizers every backward fills the gradients of all networks that its loss runs through: the
generator's loss also fills the discriminator's. Where the discriminator's gradients are not cleared between that
backward and its own step, it is also trained to believe the generator.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.training import clearing, innermost, sent_backward, stepped
from traindx_tools.on_code.values import Tensor, Value

(RULE,) = pages("torch", ("C167",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every loop in which two or more optimizers step."""
    for loop in project.training_loops:
        steps = [(p, o) for p in loop.of("step") if (o := stepped(p.event)) is not None]
        if len({id(o) for _, o in steps}) != 2:
            continue
        for place, optimizer in steps:
            yield from _judged(loop, place, optimizer, steps)


def _order(place: Place) -> int:
    return place.order


def _judged(loop: TrainingLoop, step: Place, optimizer: Value, steps: list[tuple[Place, Value]]) -> Iterator[Finding]:
    inner = innermost(step, loop)
    if any(b.kind in ("branch", "loop") for b in step.path[step.path.index(inner) + 1 :]):
        return
    cleared = clearing(loop, optimizer)
    before = bisect_left(cleared, step.order, key=_order)
    since = next((p.order for p in reversed(cleared[:before]) if inner in p.path), None)
    if since is None:
        return
    own = {id(m) for m in modules_of(optimizer) or []}
    backwards = loop.backwards[bisect_right(loop.backwards, since, key=_order) :]
    backwards = backwards[: bisect_left(backwards, step.order, key=_order)]
    for place in (p for p in backwards if inner in p.path):
        loss = sent_backward(place.event)
        at = bisect_right(steps, place.order, key=lambda s: s[0].order)
        following, other = steps[at] if at < len(steps) else (None, None)
        another = place is not backwards[-1]
        if other is None or other is optimizer or not isinstance(loss, Tensor) or not another:
            continue
        if own & loss.models and following is not None:
            event = step.event
            yield RULE.finding(
                f"{event.file.segment(event.node)} at {event.file.path}:{event.line} also applies the gradients of the "
                f"loss sent backward at line {place.event.line} for the other optimizer (stepped at line "
                f"{following.event.line}): nothing clears them in between",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "kept", "backward_line": place.event.line},
            )
            return
