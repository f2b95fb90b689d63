"""The forward pass goes around DistributedDataParallel.

Gradients are averaged by hooks that the wrapper's own forward prepares. `model.module(x)`, another method of the model
inside (`model.module.training_loss(x, y)`), or the bare model from before the wrapping, computes the same loss, but no
reduction happens: every rank trains its own replica.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import innermost, sent_backward
from traindx_tools.on_code.values import Function, Tensor, Thing, Value, unwrap

(RULE,) = pages("ranks", ("C141",))

_REDUCE = ("all_reduce", "all_reduce_coalesced", "reduce_scatter_tensor", "allreduce", "average_gradients")


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop of a project that wraps a model."""
    wrappers = [e.result for e in project.events if isinstance(e.result, Thing) and e.name == e.result.type
        and _wraps(e.result)]
    around: dict[int, set[int]] = {}
    for wrapper in wrappers:  # a model may be wrapped anew, after a thaw
        around.setdefault(id(unwrap(wrapper)), set()).add(id(wrapper))
    for loop in project.training_loops if wrappers else ():
        calls = [p for p in loop.of("__call__") if p.event.grad is not False]
        losses = [v for v in (sent_backward(p.event) for p in loop.backwards) if isinstance(v, Tensor)]
        if not losses or _reduces_by_hand(loop):
            continue
        called = {id(p.event.receiver) for p in calls}
        for wrapper in wrappers:
            inner = unwrap(wrapper)
            if called & around[id(inner)]:
                continue
            inside = [p.event for p in calls if p.event.receiver is inner]
            if inside and all(id(inner) in loss.models for loss in losses):
                event = inside[0]
                yield _finding(location(event), event.file.path, "bare model", wrapper)
            elif not inside and (by := _method_called(calls, inner, losses)) is not None:
                where = Location(by.file.path, by.line, quote=by.file.line(by.line).strip()[:200])
                yield _finding(where, by.file.path, f"bare model's {_name(by)}()", wrapper)


def _method_called(calls: list[Place], inner: Value, losses: list[Tensor]) -> Block | None:
    """The call of a method of the bare model in which its parts compute every loss."""
    parts = {id(m) for m in submodules(inner)} - {id(inner)}
    if any(not parts & loss.models for loss in losses):
        return None
    for place in calls:
        if id(place.event.receiver) in parts and any(id(place.event.receiver) in loss.models for loss in losses):
            for block in place.path:
                if block.kind == "call" and isinstance(block.subject, Function) and block.subject.owner is inner:
                    return block
    return None


def _name(block: Block) -> str:
    return block.subject.info.name if isinstance(block.subject, Function) else ""


def _finding(where: Location, path: str, by: str, wrapper: Thing) -> Finding:
    return RULE.finding(
        f"The training loss is computed by the {by} at {path}:{where.line}, around the {wrapper.short} made at "
        f"{wrapper.site}, whose forward never runs: gradients are not averaged over the ranks",
        where,
        path,
        bearing=Bearing.CAUSE,
        measured={"kind": "bypassed", "wrapped_line": wrapper.site.line},
    )


def _reduces_by_hand(loop: TrainingLoop) -> bool:
    """Whether something is reduced over the ranks in the loop that calls backward, not only in an evaluation."""
    inner = [innermost(p, loop) for p in loop.backwards]
    return any(b in p.path for p in loop.of(*_REDUCE) for b in inner)


def _wraps(thing: Thing) -> bool:
    return thing.short == "DistributedDataParallel" and "wraps" in thing.state
