"""The layers that make what the losses compare, those that a loop calls on the way, and networks told of a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from traindx_tools.on_code import time_scales
from traindx_tools.on_code.filling.entities import Entities
from traindx_tools.on_code.layers import learns, named_parts
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.optimizer_parameters import modules_of
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import sent_backward, sites_of
from traindx_tools.on_code.values import Instance, Site, Symbol, Tensor, Thing, Value, unwrap
from traindx_tools.program.entities import OutputLayer
from traindx_tools.program.moments import Act
from traindx_tools.program.parts import PartCall, TimedCall
from traindx_tools.program.timeline import Moment

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
            yield OutputLayer(head.short, project.spot(head.site), id(head),
                              project.spot(where) if where is not None else None, loaded,
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


_MOST_SITES = 55
_READ_ONLY = re.compile(r"teacher|(^|[_.])ref(erence)?(_|$|\.)|(^|[_.])target|frozen|(^|[_.])ema(_|$|\.)|oracle"
                        r"|perceptual|pretrained|momentum|fixed|(^|[_.])lpips|(^|[_.])vgg", re.IGNORECASE)  # fmt: skip


def part_calls(project: Project, entities: Entities) -> Iterator[PartCall]:
    """Every such layer of the models that loops call, in the order of the calls."""
    stores = {id(unwrap(e.args[0])): e for e in project.events if e.kind == "store" and e.args
              and e.name.startswith("attribute.") and not (e.function is not None and e.function.name == "__init__")}
    for loop in project.training_loops:
        losses = [sent_backward(p.event) for p in loop.backwards]
        if not losses or not all(isinstance(v, Tensor) and v.grad and len(v.parents) < _MOST_SITES for v in losses):
            continue
        reached = frozenset().union(*(sites_of(v) for v in losses))
        called = [unwrap(p.event.receiver) for p in loop.of("__call__") if p.event.receiver is not None]
        wholes = {id(w): w for w in called if isinstance(w, Instance)}
        inner = {id(s) for w in wholes.values() for s in submodules(w) if s is not w}
        for whole in wholes.values():
            if whole.klass.info.is_module and id(whole) not in inner and not (
                    {id(whole), *(id(p) for p in submodules(whole))} & entities.set_apart):
                yield from _of_model(loop, whole, entities, reached, stores)


def _of_model(loop: TrainingLoop, whole: Instance, entities: Entities, reached: frozenset[object],
              stores: Mapping[int, Event]) -> Iterator[PartCall]:
    paths = {id(part): (path, part) for path, part in named_parts(whole) if learns(part)}
    for place in loop.of("__call__"):
        event = place.event
        module = unwrap(event.receiver) if event.receiver is not None else None
        found = paths.pop(id(module), None) if event.grad is not False else None
        result = event.result
        if found is None or not isinstance(result, Tensor) or result.grad is False or result.site not in reached:
            continue
        path, part = found
        if not _READ_ONLY.search(path) and not _is_tied(whole, path):
            later = stores.get(id(part))
            put = Act(Moment.PARAMETERS, later.spot, origin=later) if later is not None else None
            yield PartCall(entities.model(whole), entities.model(part), path, event.spot, put,
                           later is not None and len(later.args) > 1)


def _is_tied(whole: Instance, path: str) -> bool:
    """Whether a part shares a weight with another: `self.head.weight = self.embed.weight`, in either direction."""
    weight = f"{path.rpartition('.')[2]}.weight"
    named = re.escape(weight)
    shared = re.compile(rf"\b{named}\s*=[^=]|=\s*[\w.]*\b{named}\s*(#.*)?$", re.MULTILINE)
    texts = [info.file.text for info in whole.klass.info.lineage()]
    return any("tie_weights(" in text or (weight in text and shared.search(text)) for text in texts)


def timed_calls(project: Project) -> Iterator[TimedCall]:
    """Every call with a time after its first argument that was drawn, or counts a loop without gradients."""
    same = {e.receiver: e.args[0].parent for e in project.calls("load_state_dict")
            if isinstance(e.receiver, Symbol) and e.args and isinstance(e.args[0], Symbol)}
    for event in project.calls("__call__"):
        network = _network(same.get(event.receiver, event.receiver))  # type: ignore[arg-type]
        for place, value in (*enumerate(event.args), *event.kwargs.items()) if network else ():
            told = time_scales.of(value) if place != 0 else frozenset()
            drawn = time_scales.DRAWN in told
            if told and (drawn or event.grad is False):
                scale = next(iter(told & time_scales.SCALES))
                yield TimedCall(event.text, event.spot, network, str(place), scale, drawn)


def _network(value: Value | None) -> str:
    """The class of a module, or the one unknown value that is called; an average of weights is of the same class."""
    if isinstance(value, Instance):
        return value.klass.info.name if value.klass.info.is_module else ""
    return value.type if isinstance(value, Thing) else str(hash(value)) if isinstance(value, Symbol) else ""
