"""Where arrays of numbers of a known interval choose rows of a table of a known size, in programs of JAX."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing, Value
from traindx_tools.program.constants import Indexing

_LOSSES = ("softmax_cross_entropy_with_integer_labels",)


def indexings(project: Project) -> Iterator[Indexing]:
    """Every subscript, take, one_hot, embedding and loss over classes of which both sizes are known."""
    for event in project.events:
        if "jax" not in event.file.text:
            continue
        if event.kind == "index":
            yield from _of(event, "table", _rows(event.receiver), event.args[0])
        elif event.method == "take" and event.name.startswith("jax.") and "mode" not in event.kwargs:
            yield from _of(event, "table", _rows(event.argument(0, "a")), event.argument(1, "indices"))
        elif event.method == "one_hot":
            yield from _of(event, "classes", literal(event.argument(1, "num_classes")), event.argument(0, "x"))
        elif event.method in _LOSSES:
            yield from _of(event, "classes", _last(event.argument(0, "logits")), event.argument(1, "labels"))
        elif event.method == "__call__" and isinstance(made := event.receiver, Thing) and made.short == "Embed":
            yield from _of(event, "table", literal(made.argument(0, "num_embeddings")), event.argument(0, "inputs"))


def _of(event: Event, kind: str, rows: int | None, index: Value | None) -> Iterator[Indexing]:
    chosen = isinstance(index, Tensor) and index.dtype != "bool"  # a mask keeps rows, it names none
    if rows is not None and isinstance(index, Tensor) and chosen and index.low is not None and index.high is not None:
        yield Indexing(kind, rows, index.low, index.high, event.file.segment(event.node), spot_of(event),
                       str(index.site or "?"))


def _rows(table: Value | None) -> int | None:
    shape = table.shape if isinstance(table, Tensor) else None
    return shape.dims[0] if shape is not None and shape.exact and shape.dims else None


def _last(scores: Value | None) -> int | None:
    shape = scores.shape if isinstance(scores, Tensor) else None
    return shape.dims[-1] if shape is not None and shape.dims else None
