"""The carry of a scan changes its type.

`lax.scan`, `fori_loop` and `while_loop` need a carry of the same structure, shape and dtype in every iteration. An
entry that starts as an int (`0`, `jnp.zeros((), int)`) and to which the body adds a float comes out as a float:
tracing fails with "carry input and carry output must have the same type".
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Table, Tensor, Value

(RULE,) = pages("jax", ("C504",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every structured loop."""
    for event in project.calls("scan", "fori_loop", "while_loop"):
        if not event.name.startswith("jax.lax."):
            continue
        init = event.argument(*_initial(event))
        result = event.result
        if event.method == "scan":
            result = result.items[0] if isinstance(result, Bag) and result.items else None
        if init is not None and result is not None:
            yield from _compared(project, event, init, result, "")


def _initial(event: Event) -> tuple[int, str]:
    """Position and name of the initial carry."""
    position = {"scan": 1, "fori_loop": 3}.get(event.method, 2)
    return position, "init" if event.method == "scan" else "init_val"


def _compared(project: Project, event: Event, init: Value, out: Value, name: str) -> Iterator[Finding]:
    if isinstance(init, Table) and isinstance(out, Table):
        for key, value in init.items.items():
            if key in out.items:
                yield from _compared(project, event, value, out.items[key], f"{name}[{key!r}]")
    elif isinstance(init, Bag) and isinstance(out, Bag) and len(init.items) == len(out.items) and not init.open:
        for i, (a, b) in enumerate(zip(init.items, out.items, strict=False)):
            yield from _compared(project, event, a, b, f"{name}[{i}]")
    elif _is_int(init) and _is_float(out):
        yield _finding(project, event, init, name)


def _is_int(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, int) and not isinstance(value.value, bool)
    return isinstance(value, Tensor) and value.dtype == "int"


def _is_float(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, float)
    return isinstance(value, Tensor) and (
        "floating" in value.tags or (value.dtype or "").startswith(("float", "bfloat"))
    )


def _finding(project: Project, event: Event, init: Value, name: str) -> Finding:
    where = location(event)
    if isinstance(init, Tensor) and init.site is not None:
        file = project.file(init.site.path)
        where = Location(
            file=init.site.path, line=init.site.line, quote=file.line(init.site.line).strip()[:200] if file else None
        )
    return RULE.finding(
        f"The carry{name} of {event.method} at {event.file.path}:{event.line} starts as an int at {where.code} "
        "and the body "
        "returns a float for it",
        where,
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "carry", "entry": name, "scan_line": event.line},
    )
