"""Which names of a function the value depends on that is trained, and which are only reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, syntax
from traindx_tools.on_code.values import Instance

Body = ast.FunctionDef | ast.AsyncFunctionDef
_STEPS = ("training_step", "compute_loss")
_BACKWARD = ("backward", "manual_backward")
_GRADS = ("grad", "value_and_grad", "filter_grad", "filter_value_and_grad")


def trained(code: Syntax, body: Body, look: Lookup) -> list[ast.expr]:
    """What a function has differentiated: what backward is called on, what a step or a function under grad returns."""
    found: list[ast.expr] = []
    nodes = list(_own(body))
    for call in (n for n in nodes if isinstance(n, ast.Call) and last_name(n.func) in _BACKWARD):
        if call.args:
            found.append(call.args[0])
        elif isinstance(call.func, ast.Attribute):
            found.append(call.func.value)
    under_grad = any(last_name(a) == body.name for name in _GRADS for _, c in look.calls.get(name, ()) for a in c.args)
    if body.name in _STEPS or under_grad:
        for back in (n for n in nodes if isinstance(n, ast.Return) and n.value is not None):
            found += _totals(back.value)  # type: ignore[arg-type]
    return found


def _totals(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.IfExp):
        return [*_totals(value.body), *_totals(value.orelse)]
    if isinstance(value, ast.Tuple) and value.elts:
        return [value.elts[0]]
    if isinstance(value, ast.Dict):
        return [v for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant)
                and k.value == "loss"]  # fmt: skip
    return [value]


def behind(body: Body, totals: list[ast.expr]) -> set[str]:
    """Every name that these values may depend on, through every assignment of the function."""
    sources: dict[str, set[str]] = {}
    for node in below(body):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in {n for t in targets for n in _bound(t)}:
                sources.setdefault(name, set()).update(names_in(node.value))
        elif isinstance(node, ast.NamedExpr):
            sources.setdefault(node.target.id, set()).update(names_in(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            for name in names_in(node.target):
                sources.setdefault(name, set()).update(names_in(node.iter))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
                "append", "extend", "add_", "insert", "update"):  # fmt: skip
            for holder in names_in(node.func.value):
                sources.setdefault(holder, set()).update(n for a in node.args for n in names_in(a))
    found: set[str] = set()
    queue = [n for t in totals for n in names_in(t)]
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += sources.get(name, ())
    return found


def _bound(target: ast.expr) -> Iterator[str]:
    """The names that an assignment changes: `x`, `x[...]`, `x.y`, `a, b`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _bound(part)
        return
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id


def callers(project: Project, look: Lookup, code: Syntax, body: Body) -> list[tuple[Syntax, ast.Call]]:
    """Every call of a function; of its objects, where it is the forward of a module."""
    owner = code.owner(body)
    if owner is None or body.name not in ("forward", "__call__"):
        return look.callers(body, code)
    return [(syntax(e.file), e.node) for e in project.calls("__call__") if isinstance(e.node, ast.Call)
            and isinstance(e.receiver, Instance) and e.receiver.klass.info.node is owner]  # fmt: skip


def unread(body: Body) -> set[str]:
    """Parameters that a function never reads."""
    read = {n.id for n in below(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return {n for n in parameters(body) if n not in read}


def _own(body: Body) -> Iterator[ast.AST]:
    """The nodes of a function without the functions inside it."""
    queue: list[ast.AST] = list(body.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            queue += ast.iter_child_nodes(node)
