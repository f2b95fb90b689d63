"""The new output layer is frozen together with the pretrained body.

Freezing by `model.parameters()` after the head was replaced, or by `self.parameters()` in a method, also freezes the
head, which was made here and holds random numbers. What still trains (a norm, a temperature, a bias) cannot change
which class is the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, at
from traindx_tools.on_code.repairs import optimizers
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Instance, Site, Tensor, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C153",
    name="new-head-frozen",
    title="The new output layer is frozen",
    severity=Severity.HIGH,
    sees="An output layer made in the project that requires no gradient, in a model that an optimizer trains.",
    matters="The output layer stays random: accuracy stays where it was at the start.",
    alike=("a learning rate that is too low", "features that carry nothing"),
    confirm=("print([n for n, p in model.named_parameters() if p.requires_grad])",),
)

_LOSSES = ("cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss")


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer, and at the layers that make what the losses compare."""
    loaded = any(True for _ in project.calls("load_state_dict", "load_from_checkpoint"))
    trained: dict[int, Value] = {}
    for event in project.events:
        made = event.result
        if event.kind == "call" and isinstance(made, Thing) and event.name == made.type and is_optimizer(made):
            for model in modules_of(made) or []:
                trained.update({id(m): m for m in submodules(model)})
    if loaded or not trained:
        return
    outputs = {
        e.args[0].kind_site
        for e in project.calls(*_LOSSES)
        if e.grad is not False and e.args and isinstance(e.args[0], Tensor) and e.args[0].kind_site
    }
    last = {
        e.result.kind_site: e.receiver
        for e in project.calls("__call__")
        if isinstance(e.receiver, Thing)
        and isinstance(e.result, Tensor)
        and e.result.kind_site in outputs
        and e.receiver.short in ("Linear", "Conv2d")
    }
    heads: list[Value] = list(last.values())
    heads += [
        a
        for m in trained.values()
        if isinstance(m, Thing) and not m.type.startswith("torch.nn.")
        for a in m.state.get("attrs", {}).values()
    ]
    seen: set[int] = set()
    for head in heads:
        if isinstance(head, Thing) and id(head) in trained and id(head) not in seen and _is_frozen(head):
            seen.add(id(head))
            yield _finding(project, head, trained)


def _is_frozen(head: Thing) -> bool:
    return head.type in ("torch.nn.Linear", "torch.nn.Conv2d") and head.state.get("frozen") is True


def _finding(project: Project, head: Thing, trained: dict[int, Value]) -> Finding:
    frozen_at = head.state.get("frozen_site")
    site = frozen_at if isinstance(frozen_at, Site) else head.site
    still = [m for m in trained.values() if isinstance(m, (Thing, Instance)) and m.state.get("frozen") is False]
    return RULE.finding(
        f"The output layer {head.short} made at {head.site} is frozen at {site} together with the rest of "
        "its model: it stays at its random initialisation",
        at(site, project),
        site.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "head", "still_trained": len(still)},
        patch=_patch(project, site, head),
    )


def _patch(project: Project, frozen: Site, head: Thing) -> tuple[Patch, ...]:
    file, home = project.file(frozen.path), project.file(head.site.path)
    return optimizers.thawed(file, frozen.line, head.node, home) if file is not None and home is not None else ()
