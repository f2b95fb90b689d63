"""The model is evaluated in training mode.

The trained model runs under `no_grad` outside the training step, has Dropout or BatchNorm, and nobody in the project
ever calls `eval()`: dropout removes units in the evaluation, BatchNorm normalises with the evaluation batch and
updates its running statistics with it. A forward pass under `no_grad` inside the training step (a target, a teacher)
is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.layers import MODE_DEPENDENT
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import BACKWARD, Project, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Place, walk
from traindx_tools.on_code.training import sent_backward
from traindx_tools.on_code.values import Instance, Tensor, Thing, Value, number, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C165",
    name="evaluation-in-train-mode",
    title="The model is evaluated in training mode",
    severity=Severity.HIGH,
    sees="A forward pass of the trained model under no_grad outside the training step, and no eval() in the project.",
    matters="Validation is noisy and worse than the model is; BatchNorm learns from validation data.",
    alike=("a real gap between training and validation", "Monte-Carlo dropout, which keeps it on purpose"),
    confirm=("assert not model.training in the evaluation", "evaluate twice: the two results differ"),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every forward pass without gradients of a model that is trained."""
    if any(".eval(" in f.text or ".train(" in f.text or "deterministic" in f.text for f in project.files):
        return
    trained = {m for loop in project.training_loops for p in loop.backwards
               if isinstance(v := sent_backward(p.event), Tensor) for m in v.models}  # fmt: skip
    seen: set[int] = set()
    for root in project.roots if trained else ():
        for place in walk(root, frozenset({"__call__"})):
            model = unwrap(place.event.receiver) if place.event.receiver is not None else None
            if place.event.grad is not False or id(model) not in trained or id(model) in seen or _in_step(place):
                continue
            layer = _dependent(model)
            if layer is not None:
                seen.add(id(model))
                yield _finding(place, layer)


def _in_step(place: Place) -> bool:
    """Whether the innermost loop around it also trains: a target or a statistic of the training step."""
    return bool(place.loops) and bool(BACKWARD & place.loops[-1].methods)


def _dependent(model: Value | None) -> Thing | None:
    for part in submodules(model) if isinstance(model, (Thing, Instance)) else []:
        if not isinstance(part, Thing) or not part.short.startswith(MODE_DEPENDENT) or "InstanceNorm" in part.short:
            continue
        if not ("Dropout" in part.short and number(part.argument(0, "p")) == 0):
            return part
    return None


def _finding(place: Place, layer: Thing) -> Finding:
    event = place.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} evaluates the trained model in training "
        f"mode: it has {layer.short} (made at {layer.site}) and eval() is called nowhere",
        location(event),
        event.file.path,
        strength=Strength.DIRECT,
        severity=Severity.HIGH if place.loops else Severity.MEDIUM,
        measured={"kind": "train mode", "layer": layer.short},
        patch=order.in_eval_mode(event.file, event.node),
    )
