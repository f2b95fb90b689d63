"""Training begins in eval mode.

`model.eval()` was called before the loop (for a first evaluation, or after loading) and nobody calls `train()` before
or inside it: dropout is off and BatchNorm uses, and does not update, its running statistics for the whole training.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.held import modules_of, parts_held
from traindx_tools.on_code.layers import MODE_DEPENDENT
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import same, sent_backward, stepped, text_of
from traindx_tools.on_code.values import Instance, Tensor, Thing, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C166",
    name="training-in-eval-mode",
    title="Training begins in eval mode",
    severity=Severity.HIGH,
    sees="eval() of the model that is trained before the loop, and no train() of it afterwards.",
    matters="No regularisation by dropout, and BatchNorm statistics that never adapt.",
    alike=("BatchNorm kept frozen on purpose while fine-tuning", "a frozen encoder before a trained head"),
    confirm=("print(model.training) inside the training loop",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at what happens before every training loop."""
    for loop in project.training_loops:
        if loop.of("train") or not any(stepped(p.event) is not None for p in loop.of("step")):
            continue
        trained = {m for p in loop.backwards if isinstance(v := sent_backward(p.event), Tensor) for m in v.models}
        held = _held(loop)
        mode: dict[int, Event] = {}
        for place in loop.modes_before:
            event, model = place.event, unwrap(place.event.receiver) if place.event.receiver is not None else None
            if model is not None:
                if event.method == "eval":
                    if event.function is None or event.function.name != "train":  # train() that keeps a part frozen
                        mode[id(model)] = event
                else:
                    mode = {k: e for k, e in mode.items() if not same(e.receiver, model)}
        for key, event in mode.items():
            layer = _dependent(event, held) if key in trained else None
            if layer is not None:
                yield _finding(loop, event, layer)


def _held(loop: TrainingLoop) -> frozenset[int] | None:
    """The modules whose parameters this loop's optimizers hold, by identity; None where one does not show it."""
    optimizers = [o for p in loop.of("step") if isinstance(o := stepped(p.event), (Thing, Instance))]
    known = all(modules_of(o) is not None for o in optimizers)
    return frozenset(i for o in optimizers for i in parts_held(o)) if optimizers and known else None


def _dependent(event: Event, held: frozenset[int] | None) -> Thing | None:
    """A layer of the model that acts by mode; None for a model of which no optimizer holds anything."""
    model = unwrap(event.receiver) if event.receiver is not None else None
    parts = submodules(model) if isinstance(model, (Thing, Instance)) else []
    if held is not None and not held.intersection(id(p) for p in (model, *parts)):
        return None
    for part in parts:
        if isinstance(part, Thing) and part.short.startswith(MODE_DEPENDENT) and "InstanceNorm" not in part.short:
            return part
    return None


def _finding(loop: TrainingLoop, event: Event, layer: Thing) -> Finding:
    return RULE.finding(
        f"eval() at {event.file.path}:{event.line} puts the model into eval mode before the training loop at line "
        f"{loop.block.line}, and train() is not called again: its {layer.short} (made at {layer.site}) never trains",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "eval mode", "loop_line": loop.block.line, "layer": layer.short},
        patch=_patch(loop, event),
    )


def _patch(loop: TrainingLoop, event: Event) -> tuple[Patch, ...]:
    """train() before the loop, on the model by the name that the loop calls it by."""
    forward = next((p.event for p in loop.of("__call__") if same(p.event.receiver, event.receiver)), None)
    here = forward is not None and forward.function is loop.block.function and forward.file is loop.block.file
    if forward is None or not here:
        return ()
    return order.training_again(loop.block.file, loop.block.node, text_of(forward, "callee"))
