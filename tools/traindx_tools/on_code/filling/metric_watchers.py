"""What watches a metric: told in which direction, and given what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from traindx_tools.knowledge.metrics import better
from traindx_tools.knowledge.tables import table, words
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Table, Thing, Value
from traindx_tools.program.uses import Watch

_WORDS = {"min": "min", "max": "max", True: "max", False: "min"}
_READERS = [n.rpartition(".")[2] for n in words("followed.toml", "configurations")]
_OF_THE_MEASURE = frozenset({"item", "mean", "sum", "average", "avg", "float", "compute", "round", "numpy", "cpu",
                             "detach", "nanmean", "median", "tolist", "asarray", "array"})


def watches(project: Project) -> Iterator[Watch]:
    """Every callback, schedule and trainer that is known to watch a metric by its name."""
    rows = table("metrics.toml")["watcher"]
    names = {name for row in rows for name in row["names"]}
    for event in (e for e in project.calls(*names) if isinstance(e.result, Thing)):
        row = next((r for r in rows if event.method in r["names"] and event.name.startswith(tuple(r["homes"]))), None)
        if row is None or ("only_with" in row and event.kwargs.get(row["only_with"]) != Const(True)):
            continue
        looks, said = _mode(event, row)
        if not looks or event.kwargs.get("save_top_k") in (Const(0), Const(-1)):
            continue
        for metric, used in _metrics(project, event, row):
            by_name = ("min" if metric.endswith("loss") else "max") if looks == "min if loss" else looks
            at = used.spot if used else None
            yield Watch(event.method, event.spot, metric, by_name, said, at, better(metric))


def _mode(event: Event, row: dict[str, Any]) -> tuple[str, bool]:
    """What it looks for and whether it is told so; "" where that is not known."""
    given = event.argument(*row["mode"])
    if given is None:
        return row.get("default", "") if "**" not in event.kwargs else "", False
    told = isinstance(given, Const) and (given.fixed or given.keys)
    return _WORDS.get(given.value, "") if told and isinstance(given, Const) else "", True


def _configured(project: Project, node: ast.expr) -> object:
    """The only value under a key, `config["a"]["b"]` or `config.a.b`, in the files of settings that a program reads."""
    at = node.slice if isinstance(node, ast.Subscript) else None
    key = at.value if isinstance(at, ast.Constant) else last_name(node)
    tables: list[Value | None] = [e.result for e in project.calls(*_READERS)]
    found = {v.value for table_ in tables if isinstance(table_, Table) for v in _under(table_, key)}
    return found.pop() if len(found) == 1 else None


def _under(table_: Table, key: object, left: int = 8) -> Iterator[Const]:
    for name, value in table_.items.items():
        if isinstance(value, Table) and left:
            yield from _under(value, key, left - 1)
        elif name == key and isinstance(value, Const):
            yield value


def _metrics(project: Project, event: Event, row: dict[str, Any]) -> Iterator[tuple[str, Event | None]]:
    """The names of what it watches."""
    if "metric" in row:
        name = event.argument(*row["metric"])
        if isinstance(name, Const) and isinstance(name.value, str):
            yield name.value, None
        return
    for step in project.calls("step"):
        if step.receiver is event.result and step.args:
            yield _name(syntax(step.file), step, project), step
    for root in project.roots:
        yield from ((name, None) for name in _monitored(root.result, event.result))


def _monitored(value: Value | None, schedule: Value | None) -> Iterator[str]:
    """"monitor" beside a schedule in what `configure_optimizers` gives."""
    for table_ in (value, *value.items.values()) if isinstance(value, Table) else ():
        items = table_.items if isinstance(table_, Table) else {}
        name = items.get("monitor")
        if items.get("scheduler") is schedule and isinstance(name, Const):
            yield str(name.value)


def _name(code: Syntax, step: Event, project: Project) -> str:
    """The metric's name as it is written, where nothing turns it on the way; "" else."""
    node = argument(step.node, 0, "metrics") if isinstance(step.node, ast.Call) else None
    while isinstance(node, ast.Call) and last_name(node.func) in _OF_THE_MEASURE:
        plain = isinstance(node.func, ast.Name) or bool(code.qualified(node.func))
        node = node.args[0] if plain and node.args else getattr(node.func, "value", None)
    if isinstance(node, ast.Subscript):
        _, key = lookup(project).origin(code, node.slice)
        name = key.value if isinstance(key, ast.Constant) else _configured(project, key)
        return name if isinstance(name, str) else ""
    if not isinstance(node, (ast.Name, ast.Attribute)) or any(_turns(v) for _, v in code.bindings(node)):
        return ""
    return last_name(node)


def _turns(value: ast.expr) -> bool:
    """Whether a sign, a difference or a reciprocal stands in an expression."""
    return any(isinstance(n, (ast.USub, ast.Sub)) or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)
               and isinstance(n.left, ast.Constant)) for n in ast.walk(value)) or any(
        isinstance(n, ast.Call) and last_name(n.func) in ("neg", "negative") for n in below(value))
