"""Whether the rows of a data set lie class by class, as far as the text says how they are made."""

from __future__ import annotations

from traindx_tools.knowledge.fetching import lies_by_class
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Bag, Const, Instance, Tensor, Thing, Value

_ORDERS = ("shuffle", "permutation", "sample", "randperm")


def class_by_class(project: Project, data: Value | None, is_stream: bool) -> tuple[str, str, int | None]:
    """Why, as a clause, where the rows are made, and the rows of a buffer that they pass; ("", "", None) if not."""
    rows = _ordered(data, 0)
    if rows is not None:
        orders = [e.args[0] if e.args else e.receiver for e in project.calls(*_ORDERS)]
        if any(o is rows for o in orders):
            return "", "", None
        site = str(rows.site) if isinstance(rows, (Bag, Tensor)) else "?"
        buffer = _buffer(data) if is_stream else None
        through = f", passes through a buffer of {buffer} rows" if buffer else ""
        return f"reads rows that are made class by class at {site}{through}", site, buffer
    if not isinstance(data, Thing):
        return "", "", None
    why = lies_by_class(data.short)
    if not why and data.short == "ConcatDataset" and _one_label_each(data.args[0] if data.args else None):
        why = f"the parts that {data.site} puts in a row have one label each"
    return why, str(data.site) if why else "", None


def _ordered(value: Value | None, depth: int) -> Value | None:
    """The rows inside a data set that were made class by class."""
    if depth > 4:
        return None
    if isinstance(value, Bag):
        return value if value.ordered_by else None
    if isinstance(value, Tensor):
        return value if {"ramp", "repeated"} <= value.tags else None
    inner: list[Value] = []
    if isinstance(value, Instance):
        inner = list(value.attrs.values())
    elif isinstance(value, Thing) and (value.short, len(value.args) > 1) in (
            ("TensorDataset", True), ("TensorDataset", False), ("Subset", True)):
        inner = list(value.args)
    return next((found for v in inner if (found := _ordered(v, depth + 1)) is not None), None)


def _one_label_each(parts: Value | None) -> bool:
    """Whether a comprehension makes parts of which each has the same label for all its rows."""
    part = parts.items[0] if isinstance(parts, Bag) and parts.open and parts.items else None
    return isinstance(part, Thing) and any(isinstance(a, Tensor) and "uniform" in a.tags for a in part.args)


def _buffer(data: Value | None) -> int | None:
    """The size of a buffer in which a stream shuffles: a whole number that it keeps and that is no length
    of its own."""
    if not isinstance(data, Instance):
        return None
    sizes = [v.value for k, v in data.attrs.items() if isinstance(v, Const) and type(v.value) is int
             and any(word in k for word in ("buffer", "window", "pool", "shuffle"))]
    return sizes[0] if sizes else None
