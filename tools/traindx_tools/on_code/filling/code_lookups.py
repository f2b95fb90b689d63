"""Choices of a code by the product of normalised rows with a table."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing, Value, parts
from traindx_tools.program.parts import CodeLookup

_CHOOSES = ("argmax", "max", "topk", "argsort")
_NORMALISES = ("normalize", "renorm_", "div_", "copy_", "weight_norm", "renorm")


def code_lookups(project: Project) -> Iterator[CodeLookup]:
    """Every choice behind such a product."""
    products = {e.site: (e, t) for e in project.events if e.kind == "operation" and e.name == "@"
                and (t := _table(e)) is not None}  # fmt: skip
    for event in project.calls(*_CHOOSES) if products else ():
        x = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        sites = (x.site, *x.parents) if isinstance(x, Tensor) else ()
        found = next((products[s] for s in sites if s in products), None)
        if found is not None:
            product, table = found
            taken = any(e.receiver is table for e in project.calls("__call__")) or any(
                table in _of(e) for e in project.calls("embedding", "index_select"))
            yield CodeLookup(f"{table.short} made at {table.site}", product.file.segment(product.node),
                             spot_of(product), spot_of(event), taken, _is_normalised(project, table))


def _table(event: Event) -> Thing | None:
    """The layer whose weight one side of a product is, where the other is of rows of length 1."""
    for one, other in (event.args, event.args[::-1]):
        if isinstance(one, Tensor) and "unit" in one.tags and not isinstance(other, Tensor):
            things = [p for p in parts(other) if isinstance(p, Thing)]
            return next((t for t in things if t.short in ("Embedding", "Parameter")), None)
    return None


def _of(event: Event) -> list[Value]:
    given = [*event.args, *event.kwargs.values(), *([event.receiver] if event.receiver is not None else [])]
    return [p for v in given for p in parts(v)]


def _is_normalised(project: Project, table: Thing) -> bool:
    """Whether a line other than those that make it normalises the table, or divides it."""
    divided = [e for e in project.events if e.kind == "operation" and e.name == "/"]
    return any(any(p is table for p in _of(e)) and not (e.function is not None and e.function.name == "__init__")
               for e in (*project.calls(*_NORMALISES), *divided))  # fmt: skip
