"""A data set keeps many Python objects and is read by worker processes.

Workers are forked and share the parent's pages until somebody writes to them. Reading a Python object changes its
reference count, which is a write: page after page is copied into each worker, and memory grows with every sample that
is touched, up to workers times the data set. Arrays (numpy, torch, Arrow) have one reference count for all their rows
and do not do this.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Instance, Symbol, Table, Tensor, Thing, Value, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C122",
    name="python-objects-shared-with-workers",
    title="A large list of Python objects is shared with workers",
    severity=Severity.MEDIUM,
    sees="A data set that holds a list of dicts, lists or strings, read by a DataLoader with workers.",
    matters="Host memory grows with the samples read, in each worker, until the machine runs out.",
    alike=("a leak in __getitem__", "loss tensors that are kept"),
    confirm=("watch Private_Dirty of the workers in /proc/PID/smaps_rollup", "num_workers=0 and the growth is gone"),
    thresholds={"rows": Threshold(50_000, "objects", "some 1 kB a row and worker")},
)


def check(project: Project) -> Iterator[Finding]:
    """Look at loaders with workers."""
    for event in project.calls("DataLoader"):
        loader = event.result
        if not isinstance(loader, Thing) or not (number(loader.kwargs.get("num_workers")) or 0) > 0:
            continue
        dataset = loader.argument(0, "dataset")
        if isinstance(dataset, Instance):
            for name, value in dataset.attrs.items():
                if isinstance(value, Bag) and value.kind == "list" and value.items and _is_object(value.items[0]):
                    yield from _judged(event, loader, dataset, name, value)


def _is_object(value: Value) -> bool:
    if isinstance(value, (Table, Instance)):
        return True
    if isinstance(value, Bag):
        return not all(isinstance(v, Tensor) for v in value.items)
    return (isinstance(value, Const) and isinstance(value.value, str)) or (
        isinstance(value, Symbol) and value.role == "text"
    )


def _judged(event: Event, loader: Thing, dataset: Instance, name: str, rows: Bag) -> Iterator[Finding]:
    size = number(rows.size) if rows.open else float(len(rows.items))
    if size is not None and size < 5_000:
        return
    large = size is not None and size >= 50_000
    many = f"{size:,.0f} " if size is not None else ""
    yield RULE.finding(
        f"self.{name} of {dataset.klass.info.name} holds {many}Python objects (made at {rows.site}) and is read by "
        f"{number(loader.kwargs['num_workers']):g} forked workers of the loader at "
        f"{event.file.path}:{event.line}: reading "
        "changes reference counts, so each worker copies the pages it touches",
        location(event) if rows.site is None else location(_at(event, rows)),
        event.file.path,
        bearing=Bearing.CAUSE if large else Bearing.SIGN,
        severity=Severity.MEDIUM if large else Severity.LOW,
        measured={"kind": "objects", "rows": size, "workers": number(loader.kwargs["num_workers"]), "attribute": name},
    )


def _at(event: Event, rows: Bag) -> Event:
    import ast

    node = ast.Pass(
        lineno=rows.site.line if rows.site else event.line, end_lineno=rows.site.line if rows.site else event.line
    )
    return Event("call", event.name, event.method, node, event.file, event.function)
