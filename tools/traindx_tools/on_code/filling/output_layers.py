"""The layers that make what the losses compare."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_at
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.optimizer_parameters import modules_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Site, Tensor, Thing, Value
from traindx_tools.program.entities import OutputLayer

_LOSSES = ("cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss")
_LAYERS = ("torch.nn.Linear", "torch.nn.Conv2d")


def output_layers(project: Project, optimizers: list[Event]) -> Iterator[OutputLayer]:
    """Those whose output a loss is given, and those put into a model of an installed package."""
    loaded = any(True for _ in project.calls("load_state_dict", "load_from_checkpoint"))
    seen: set[int] = set()
    for head in (*_compared(project), *_put_in(optimizers)):
        if isinstance(head, Thing) and head.type in _LAYERS and id(head) not in seen:
            seen.add(id(head))
            site = head.state.get("frozen_site") if head.state.get("frozen") is True else None
            where = site if isinstance(site, Site) else head.site if head.state.get("frozen") is True else None
            yield OutputLayer(head.short, spot_at(head.site, project), id(head),
                              spot_at(where, project) if where is not None else None, loaded,
                              (head, project.file(head.site.path), project.file(where.path) if where else None))


def _compared(project: Project) -> list[Value]:
    outputs = {e.args[0].kind_site for e in project.calls(*_LOSSES)
               if e.grad is not False and e.args and isinstance(e.args[0], Tensor) and e.args[0].kind_site}
    last = {e.result.kind_site: e.receiver for e in project.calls("__call__")
            if isinstance(e.receiver, Thing) and isinstance(e.result, Tensor) and e.result.kind_site in outputs
            and e.receiver.type in _LAYERS}
    return list(last.values())


def _put_in(optimizers: list[Event]) -> Iterator[Value]:
    held = {id(p): p for e in optimizers for m in modules_of(e.result) or [] for p in submodules(m)}
    for part in held.values():
        if isinstance(part, Thing) and not part.type.startswith("torch.nn."):
            yield from part.state.get("attrs", {}).values()
