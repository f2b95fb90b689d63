"""Where arrays of numbers of a known interval choose rows of a table of a known size, in programs of JAX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.on_code.axes import INSERTED
from traindx_tools.on_code.descriptions import Axes, Axis
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value, integer, number
from traindx_tools.program.constants import Indexing

_ENCODES = {"one_hot": (0, "input"), "scatter_": (1, "index"), "scatter": (1, "index")}
_AXES = frozenset({"unsqueeze", "long", "view", "reshape", "squeeze", "to"})
_CLASSES = 64
"""A label from 0 up to this that is ignored may be one of the classes, as padding often is."""
_LOSSES = ("softmax_cross_entropy_with_integer_labels",)


def indexings(project: Project) -> Iterator[Indexing]:
    """Every subscript, take, one_hot, embedding and loss over classes of which both sizes are known."""
    of_jax = {id(f) for f in project.files if "jax" in f.text}
    for event in project.events if of_jax else ():
        if id(event.file) not in of_jax:
            continue
        if event.kind == "index":
            yield from _of(event, "table", _rows(event.receiver), event.args[0])
        elif event.method == "take" and event.name.startswith("jax.") and "mode" not in event.kwargs:
            yield from _of(event, "table", _rows(event.argument(0, "a")), event.argument(1, "indices"))
        elif event.method == "one_hot":
            yield from _of(event, "classes", integer(event.argument(1, "num_classes")), event.argument(0, "x"))
        elif event.method in _LOSSES:
            yield from _of(event, "classes", _last(event.argument(0, "logits")), event.argument(1, "labels"))
        elif event.method == "__call__" and isinstance(made := event.receiver, Thing) and made.short == "Embed":
            yield from _of(event, "table", integer(made.argument(0, "num_embeddings")), event.argument(0, "inputs"))


def ignored(project: Project) -> Iterator[Indexing]:
    """Targets that one term of a loss makes one-hot while the other ignores a label beyond the classes."""
    losses = [e for e in project.calls("cross_entropy", "nll_loss") if _ignores(e) is not None]
    told: set[str] = set()
    for root in project.roots if losses else ():
        inside = {id(p.event) for p in root.places}
        targets = [(e.argument(1, "target"), e) for e in losses if id(e) in inside]
        for event in (p.event for p in root.places if p.event.method in _ENCODES and p.event.kind == "call"):
            index = event.argument(*_ENCODES[event.method])
            loss = next((e for t, e in targets if isinstance(t, (Symbol, Tensor)) and (
                _counted(_as_it_is(index)) == _counted(t))), None)
            if loss is not None and str(event.site) not in told:
                told.add(str(event.site))
                yield Indexing("ignored", 0, _ignores(loss) or 0.0, 0.0, event.text, event.spot, str(loss.site))


def _ignores(loss: Event) -> float | None:
    """The label that a cross entropy leaves out, where it can be no class."""
    layer = loss.receiver.kwargs if isinstance(loss.receiver, Thing) else {}
    given = loss.kwargs.get("ignore_index", layer.get("ignore_index"))
    label = number(given)
    if given is None or (label is not None and 0 <= label < _CLASSES):
        return None
    return -100.0 if label is None else label


def _as_it_is(index: Value | None) -> Value | None:
    """An index without the axes that are added to it."""
    while isinstance(index, Symbol) and index.parent is not None and (
            index.name.partition("@")[0] in _AXES or (
                index.role == "item" and index.name.startswith(("slice", "axis")))):
        index = index.parent
    return index


def _counted(value: Value | None) -> Value | None:
    """An array without the axes that were inserted, where the others have their lengths."""
    if not isinstance(value, (Symbol, Tensor)) or value.axes is None:
        return value
    left = tuple(d for d in value.axes.dims if d != INSERTED)
    known = not any(isinstance(d, Axis) and d.size == "" for d in left)
    return replace(value, axes=Axes(left)) if known else value


def _of(event: Event, kind: str, rows: int | None, index: Value | None) -> Iterator[Indexing]:
    chosen = isinstance(index, Tensor) and index.dtype != "bool"  # a mask keeps rows, it names none
    if rows is not None and isinstance(index, Tensor) and chosen and index.low is not None and index.high is not None:
        yield Indexing(kind, rows, index.low, index.high, event.text, event.spot, str(index.site or "?"))


def _rows(table: Value | None) -> int | None:
    shape = table.shape if isinstance(table, Tensor) else None
    return shape.dims[0] if shape is not None and shape.exact and shape.dims else None


def _last(scores: Value | None) -> int | None:
    shape = scores.shape if isinstance(scores, Tensor) else None
    return shape.dims[-1] if shape is not None and shape.dims else None
