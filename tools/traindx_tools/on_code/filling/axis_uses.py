"""Over which axis of a value an operation runs, and what stands on that axis."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code import axes
from traindx_tools.on_code.filling.spots import spot_at, spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Operation, Site, Symbol, Tensor, Thing
from traindx_tools.program.entities import LossCall
from traindx_tools.program.uses import AxisUse

_FEW = 40
"""Weights up to this many, written out for a sampler of len(data) draws, are those of classes."""
_LAYERS = {"Softmax": "softmax", "LogSoftmax": "log_softmax"}


def axis_uses(project: Project, losses: list[LossCall]) -> Iterator[AxisUse]:
    """Every softmax of which the axis is known, and every linear layer that reads a mean or sum over the samples."""
    logged = {x.kind_site for e in project.calls("log") for x in (e.receiver, *e.args) if isinstance(x, Tensor)}
    in_losses = {(a.made.file, a.made.line) for c in losses for a in c.arguments.values() if a.made is not None}
    for event in project.calls("softmax", "log_softmax", "__call__"):
        layer = event.receiver
        called = isinstance(layer, Thing) and event.method == "__call__"
        if called and isinstance(layer, Thing) and layer.type == "torch.nn.Linear":
            yield from _pooled(event, project)
        elif event.method != "__call__" or (isinstance(layer, Thing) and layer.short in _LAYERS):
            yield from _normalised(event, in_losses, logged)
    for event in project.events:
        if event.kind == "whole":
            yield _elsewhere(event, project)
    sampled = [e.result.kwargs.get("sampler") for e in project.calls("DataLoader") if isinstance(e.result, Thing)]
    for event in project.calls("WeightedRandomSampler"):
        weights, count = event.argument(0, "weights"), event.argument(1, "num_samples")
        one = axes.at(axes.of(weights), 0)
        few = isinstance(one.size, int) and 1 < one.size <= _FEW and isinstance(count, Operation) and count.op == "len"
        if any(s is event.result for s in sampled) and (one.role == "classes" or few):
            yield AxisUse("sampler", spot_of(event), event.file.segment(event.node), 0, "classes", origin=event)


def _elsewhere(event: Event, project: Project) -> AxisUse:
    """What is whole along one axis and asked along another."""
    x, at = event.args[0], literal(event.args[1]) or 0
    form = x.axes if isinstance(x, (Tensor, Symbol)) else None
    done = form.whole if form is not None and event.name not in ("columns", "samples") else None
    where = spot_of(event) if done is None or done.site is None else spot_at(done.site, project)
    by = event.name if done is not None else event.receiver.short if isinstance(event.receiver, Thing) else event.method
    role = event.name if done is None else "elsewhere"
    return AxisUse(done.by if done is not None else "standardised", where, event.file.segment(event.node),
                   done.axis if done is not None else at, role, None, at, asked=by, shape=str(form or ""), origin=event)


def _normalised(event: Event, in_losses: set[tuple[str, int]], logged: set[Site | None]) -> Iterator[AxisUse]:
    layer = event.receiver
    own = isinstance(layer, Tensor)
    x = layer if isinstance(layer, Tensor) else event.args[0] if event.args else None
    if isinstance(layer, Thing) and layer.short in _LAYERS:
        name, dim = _LAYERS[layer.short], layer.argument(0, "dim")
    else:
        name, dim = event.method, event.argument(0 if own else 1, "dim") or event.kwargs.get("axis")
    if isinstance(event.result, Tensor) and event.result.kind_site in logged and event.result.kind_site is not None:
        name = "log_softmax"
    by_default = dim is None and event.name.startswith(("jax.", "flax."))
    axis = -1 if by_default else literal(dim)
    if not isinstance(x, Tensor) or axis is None:
        return
    dims = x.shape.dims if x.shape is not None else ()
    role, size = _role(x, axis), None
    counted = x.axes.dims if x.axes is not None and x.axes.exact else ()
    if not role and len(counted) == 2 and axis == 0 and getattr(counted[0], "role", "") == "batch" and (
            getattr(counted[1], "role", "") == "feature") and getattr(counted[1], "size", 1) not in (1, ""):
        last = getattr(counted[1], "size", 0)
        yield AxisUse(name, spot_of(event), event.file.segment(event.node), axis, "batch", None,
                      last if isinstance(last, int) else 2, origin=event)
        return
    if role == "features":
        size = dims[-1] if dims else None
    yield AxisUse(name, spot_of(event), event.file.segment(event.node), axis, role, size, dims[-1] if dims else None,
                  "sequence" in x.tags, (event.file.path, event.line) in in_losses,
                  "layer" in x.tags or x.kind == "linear", origin=event)


def _role(x: Tensor, axis: int) -> str:
    rank = x.shape.rank if x.shape is not None else None
    if axis == -1 or (rank is not None and axis == rank - 1):
        return "features"
    first = next((a for a in ("batch_first", "time_first") if a in x.tags), "")
    names = ("time", "batch") if first == "time_first" else ("batch", "time")
    if axis == 0:
        return "batch" if not first and rank == 2 and x.shape and x.shape.dims[0] != 1 else names[0] if first else ""
    return names[1] if first and "sequence" in x.tags and axis in (1, -2) else ""


def _pooled(event: Event, project: Project) -> Iterator[AxisUse]:
    """A sum or mean over the samples, inside a forward pass, that a linear layer reads."""
    x, info = event.args[0] if event.args else None, event.function
    inside = info is not None and info.owner is not None and info.owner.is_module
    if inside and isinstance(x, Tensor) and "batch_reduced" in x.tags and x.grad is not False:
        site = x.site if x.site is not None else Site(event.file.path, event.line)
        yield AxisUse("pooled", spot_at(site, project), "Linear", 0, "batch", origin=event)
