"""Weights change inside one autocast region.

Autocast keeps the half-precision copies of the weights that it made until the outermost region ends. A step (or a swap
of parameters) inside it changes the weights, and every forward pass that follows in the same region still uses the old
copies: the loss stays flat, a KL between old and new is exactly 0. The region belongs around one forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import stepped
from traindx_tools.on_code.values import Thing, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C210",
    name="weights-change-under-autocast",
    title="Weights change inside one autocast region",
    severity=Severity.HIGH,
    sees="An optimizer step inside an autocast region in which another forward pass follows.",
    matters="Forward passes use stale weights: updates have no effect until the region ends.",
    alike=("an autocast region around each forward pass, which is right",),
    confirm=("torch.clear_autocast_cache() after the step changes the result",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop, and at the regions around it."""
    for loop in project.training_loops:
        for place in loop.of("step"):
            if stepped(place.event) is None or place.event.autocast is None:
                continue
            region = _region(loop, place)
            if region is not None:
                yield _finding(place, region)
                break


def _region(loop: TrainingLoop, place: Place) -> Block | None:
    """The region around the step in which a forward pass follows: around the loop, or with a call behind the step."""
    outer = [b for b in loop.path if _is_autocast(b)]
    if outer:
        return outer[0]
    regions = [b for b in place.path if _is_autocast(b)]
    if not regions:
        return None
    around = place.path.index(regions[0])
    if any(b.kind == "loop" for b in place.path[around + 1 :]):
        return regions[0]
    later = [p for p in loop.of("__call__") if regions[0] in p.path and p.order > place.order]
    return regions[0] if any(p.event.receiver is not None and _trains(p) for p in later) else None


def _trains(place: Place) -> bool:
    result = place.event.result
    return bool(getattr(result, "models", None))


def _is_autocast(block: Block) -> bool:
    manager = block.subject
    region = block.kind == "with" and isinstance(manager, Thing) and manager.type == "torch.amp.autocast"
    if not region or not isinstance(manager, Thing):
        return False
    off = truth(manager.kwargs.get("enabled")) is False or truth(manager.kwargs.get("cache_enabled")) is False
    return not off


def _finding(place: Place, region: Block) -> Finding:
    event = place.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} changes weights inside the autocast "
        f"region at line {region.line}, in which more forward passes follow: they use the copies from before the step",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "step", "region_line": region.line},
    )
