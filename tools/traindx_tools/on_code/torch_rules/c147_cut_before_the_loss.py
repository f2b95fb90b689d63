"""A part that the optimizer should train is cut off from the loss.

The optimizer holds a part whose output is always detached, or computed under `no_grad`, before any loss sees it: a
generator whose fake is detached for the discriminator and used again for its own step, an encoder whose features go
through `.detach()`. The part gets no gradient and stays at its initialisation; everything behind it trains normally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import sent_backward, sites_of, stepped
from traindx_tools.on_code.values import Function, Instance, Tensor, Thing

(RULE,) = pages("torch", ("C147",))

MOST_SITES = 55
"""Sites of a loss beyond which its origin is not known completely."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop whose losses are known."""
    for loop in project.training_loops:
        losses = [sent_backward(p.event) for p in loop.backwards]
        if not losses or not all(isinstance(v, Tensor) and v.grad and len(v.parents) < MOST_SITES for v in losses):
            continue
        reached = frozenset().union(*(sites_of(v) for v in losses))
        held: frozenset[object] | None = None
        called: dict[int, list[Event]] = {}
        for place in loop.of("__call__"):
            called.setdefault(id(place.event.receiver), []).append(place.event)
        for optimizer in {id(o): o for p in loop.of("step") if (o := stepped(p.event)) is not None}.values():
            held = _held_by_objects(loop) if held is None else held
            yield from _unreached(loop, optimizer, reached, held, called)


def _unreached(loop: TrainingLoop, optimizer: object, reached: frozenset[object], held: frozenset[object],
               called: Mapping[int, Sequence[Event]]) -> Iterator[Finding]:  # fmt: skip
    for module in modules_of(optimizer) or []:  # type: ignore[arg-type]
        if not isinstance(module, (Thing, Instance)) or module.state.get("frozen"):
            continue
        calls = called.get(id(module), ())
        results = [e.result for e in calls]
        if not calls or not all(isinstance(r, Tensor) and r.site is not None for r in results):
            continue
        if any(isinstance(r, Tensor) and (r.site in reached or r.site in held) for r in results):
            continue
        if not _by_other_methods(loop, module, reached):
            yield _finding(calls[0], module)


def _by_other_methods(loop: TrainingLoop, module: Thing | Instance, reached: frozenset[object]) -> bool:
    """Whether a loss is computed by the module's parts outside its forward, in a method of its own or from outside."""
    parts = {id(m) for m in submodules(module)} - {id(module)}
    used = any(isinstance(r := p.event.result, Tensor) and r.grad and r.site in reached
               for p in loop.of("__call__") if id(p.event.receiver) in parts)  # fmt: skip
    return used or any(
        b.kind == "call" and isinstance(b.subject, Function) and b.subject.owner is module and
        isinstance(r := b.result, Tensor) and r.grad and r.site in reached
        for p in loop.places for b in p.path
    )  # fmt: skip


def _held_by_objects(loop: TrainingLoop) -> frozenset[object]:
    """Sites of values that carry a gradient into an object (a distribution, a list): what comes out is not followed."""
    given = [(e, (*e.args, *e.kwargs.values())) for p in loop.places if (e := p.event).kind == "call"
             and not isinstance(e.result, Tensor)]
    return frozenset(v.site for _, values in given for v in values
                     if isinstance(v, Tensor) and v.grad and v.site is not None)


def _finding(event: Event, module: Thing | Instance) -> Finding:
    return RULE.finding(
        f"The output of the module made at {module.site}, computed at {event.file.path}:{event.line}, is cut off "
        "(detached or without gradients) before every loss of the loop: its optimizer steps without a gradient",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "cut", "made_at": str(module.site)},
        patch=graph.kept_beside_its_copy(event.file, event.node),
    )
