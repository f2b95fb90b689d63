"""New batch statistics are computed and not carried on.

With `mutable=["batch_stats"]` flax's apply returns the updated running mean and variance beside the output. Where they
are not put back into the state (`state.replace(batch_stats=...)`), evaluation uses the initial mean 0 and variance 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import jax_states
from traindx_tools.on_code.syntax import Syntax, last_name, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C507",
    name="batch-statistics-dropped",
    title="New batch statistics are not carried on",
    severity=Severity.HIGH,
    sees="apply with mutable batch_stats in a project that never puts a new value of them anywhere.",
    matters="Good training metrics and useless evaluation.",
    alike=("a momentum of the statistics that is too slow",),
    confirm=("print state.batch_stats before and after an epoch",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every apply with mutable collections."""
    for event in [*project.calls("apply"), *project.calls("apply_fn"), *project.calls("__call__")]:
        name = _statistics(event.kwargs.get("mutable"))
        if name and not _carried(project, name):
            yield _finding(event, name)
            return


def _statistics(value: Value | None) -> str | None:
    items = value.items if isinstance(value, Bag) else [value] if value is not None else []
    return next((i.value for i in items if isinstance(i, Const) and i.value in ("batch_stats", "state")), None)


def _carried(project: Project, name: str) -> bool:
    """Whether any value is put under that name: a keyword, an entry of a dict, or a whole mapping merged."""
    return any(_carries(node, name, syntax(file)) for file in project.files for node in ast.walk(file.tree))


def _carries(node: ast.AST, name: str, code: Syntax) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("replace", "apply_gradients", "_replace"):
            return any(k.arg == name for k in node.keywords)
        got = (a.value for a in node.args if isinstance(a, ast.Constant))
        return node.func.attr == "get" and name in got
    if isinstance(node, ast.Subscript):
        made = code.origin(node.value)
        initial = isinstance(made, ast.Call) and last_name(made.func) == "init"
        return isinstance(node.slice, ast.Constant) and node.slice.value == name and not initial
    if isinstance(node, ast.Dict):
        return None in node.keys
    stored = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(t, ast.Attribute) and t.attr == name for t in stored)


def _finding(event: Event, name: str) -> Finding:
    return RULE.finding(
        f"The call at {event.file.path}:{event.line} returns new {name} (mutable), and nothing in the project puts "
        "them back into the state: evaluation uses the initial statistics",
        location(event),
        event.file.path,
        strength=Strength.CIRCUMSTANTIAL,
        measured={"kind": name},
        patch=jax_states.statistics_put_back(event.file, event.node, name),
    )
