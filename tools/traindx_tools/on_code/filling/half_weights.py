"""Optimizers of torch that update parameters in a half type; gradients as values that keep the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.optimizer_parameters import modules_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Bag, Instance, Site, Symbol, Tensor, Thing, number, parts, truth, unwrap
from traindx_tools.program.constants import HalfUpdate
from traindx_tools.program.moments import Spot

_HALVES = ("float16", "bfloat16")
_OPTIMIZERS = ("Adam", "AdamW", "SGD", "NAdam", "RMSprop", "Adamax", "RAdam")


def half_updates(project: Project) -> Iterator[HalfUpdate]:
    """Every one, with its learning rate."""
    for event in project.calls(*_OPTIMIZERS):
        made = event.result
        found = _half(made) if isinstance(made, Thing) and event.name == made.type and (
            made.type == f"torch.optim.{made.short}") else None
        if found is None or not isinstance(made, Thing):
            continue
        rate, eps = number(made.argument(1, "lr")), number(made.kwargs.get("eps"))
        cast = project.spot(found[1]) if found[1] is not None else event.spot
        yield HalfUpdate(made.short, event.spot, cast, found[0],
                         1e-3 if rate is None and "lr" not in made.kwargs else rate,
                         1e-8 if "eps" not in made.kwargs else eps)


def scaled_gradients(project: Project) -> Iterator[Spot]:
    """Every `autograd.grad` of a scaled loss for a graph of its own, where nothing in the program reads the scale."""
    if any(True for _ in project.calls("get_scale", "unscale_gradients")):
        return
    for event in project.calls("grad"):
        of, graph = event.argument(0, "outputs"), event.argument(4, "create_graph")
        of = of.items[0] if isinstance(of, Bag) and of.items else of
        scaled = "scaled" in of.tags if isinstance(of, Tensor) else of is not None and any(
            isinstance(p, Symbol) and (p.role, p.name) == ("call", "scale") for p in parts(of))
        if event.name == "torch.autograd.grad" and scaled and truth(graph):
            yield event.spot


def _half(optimizer: Thing) -> tuple[str, Site | None] | None:
    """The half type to which a module that an optimizer holds was cast, and where."""
    for module in modules_of(optimizer) or []:
        for part in [unwrap(module), *submodules(unwrap(module))[:1]]:
            known = part.state if isinstance(part, (Thing, Instance)) else {}
            if known.get("dtype") in _HALVES and not known.get("frozen"):
                return str(known["dtype"]), known.get("dtype_site")
    return None
