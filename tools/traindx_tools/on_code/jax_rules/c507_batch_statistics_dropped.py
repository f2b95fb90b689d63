"""New batch statistics are computed and not carried on.

With `mutable=["batch_stats"]` flax's apply returns the updated running mean and variance beside the output. Where they
are not put back into the state (`state.replace(batch_stats=...)`), evaluation uses the initial mean 0 and variance 1;
so it does where the old ones are put back. Without `mutable`, a training pass through BatchNorm raises an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import jax_states
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.tracing import differentiated
from traindx_tools.on_code.values import Bag, Const, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C507",
    name="batch-statistics-dropped",
    title="New batch statistics are not carried on",
    severity=Severity.HIGH,
    sees="apply with mutable batch_stats in a project that never puts a new value of them anywhere, or puts the old "
         "one back; a training pass with batch_stats and without mutable.",
    matters="Good training metrics and useless evaluation.",
    alike=("a momentum of the statistics that is too slow",),
    confirm=("print state.batch_stats before and after an epoch",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every apply with mutable collections."""
    for file in project.files:
        if "batch_stats" in file.text and "flax" in file.text:
            yield from _old(syntax(file))
            yield from _immutable(syntax(file))
    for event in [*project.calls("apply"), *project.calls("apply_fn"), *project.calls("__call__")]:
        name = _statistics(event.kwargs.get("mutable"))
        if name and not _carried(project, name):
            yield _finding(event, name)
            return


def _old(code: Syntax) -> Iterator[Finding]:
    """`state.apply_gradients(grads=grads, batch_stats=state.batch_stats)` beside an apply that made new ones."""
    for call in code.calls("apply_gradients", "replace"):
        given = next((k.value for k in call.keywords if k.arg == "batch_stats"), None)
        body = code.function(call)
        owner = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if given is None or body is None or written(given) != f"{owner}.batch_stats" or not owner:
            continue
        new = [k for k in code.inside(body, ast.keyword) if k.arg == "mutable" and "batch_stats" in written(k.value)]
        other = [k for k in code.inside(body, ast.keyword) if k.arg == "batch_stats" and written(k.value) != written(
            given)]  # fmt: skip
        if new and not other:
            yield RULE.finding(
                f"{written(call)[:90]} at {code.at(call)} puts the old batch_stats back, although the pass at line "
                f"{new[0].value.lineno} returns new ones: evaluation uses the initial statistics",
                code.place(call), code.file.path, bearing=Bearing.CAUSE, measured={"kind": "batch_stats"},
            )  # fmt: skip


def _immutable(code: Syntax) -> Iterator[Finding]:
    """A differentiated pass in training mode that is given batch_stats and no leave to change them."""
    if "BatchNorm" not in code.file.text:
        return
    for _, function in differentiated(code):
        for call in code.calls_in(function, "apply", "apply_fn"):
            said = {k.arg: k.value for k in call.keywords}
            trains = any(isinstance(said.get(n), ast.Constant) and getattr(said[n], "value", None) is True
                         for n in ("train", "training", "is_training"))  # fmt: skip
            held = call.args and isinstance(call.args[0], ast.Dict) and "batch_stats" in written(call.args[0])
            if held and trains and "mutable" not in said and None not in said:
                yield RULE.finding(
                    f"{written(call)[:90]} at {code.at(call)} runs BatchNorm in training mode without "
                    "mutable=['batch_stats']: flax refuses to change the statistics",
                    code.place(call), code.file.path, bearing=Bearing.CAUSE, measured={"kind": "batch_stats"},
                )  # fmt: skip


def _statistics(value: Value | None) -> str | None:
    items = value.items if isinstance(value, Bag) else [value] if value is not None else []
    return next((i.value for i in items if isinstance(i, Const) and i.value in ("batch_stats", "state")), None)


def _carried(project: Project, name: str) -> bool:
    """Whether any value is put under that name: a keyword, an entry of a dict, or a whole mapping merged."""
    return any(_carries(node, name, syntax(file)) for file in project.files for node in below(file.tree))


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
        bearing=Bearing.SIGN,
        measured={"kind": name},
        patch=jax_states.statistics_put_back(event.file, event.node, name),
    )
