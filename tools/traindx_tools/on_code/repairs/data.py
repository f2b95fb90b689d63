"""What is fed to the model (C121, C129, C152, C192, C199, C217)."""

from __future__ import annotations

import ast
import re

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.schedule import bound_between
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.values import Instance

_GUARD = re.compile(r"""__name__\s*==\s*["']__main__["']""")


def shuffled(file: SourceFile, loader: ast.AST) -> tuple[Patch, ...]:
    """shuffle=True for a loader over rows in order."""
    if not isinstance(loader, ast.Call):
        return ()
    given = argument(loader, 2, "shuffle")
    change = Change(file, "shuffle the training data")
    if given is not None:
        return change.replace(given, "True").patches()
    return change.pass_argument(loader, "shuffle", "True").patches()


def whole_buffer(file: SourceFile, dataset: Instance, size: int) -> tuple[Patch, ...]:
    """A shuffle buffer that holds all rows, where the stream is made of a list of them."""
    node, init = dataset.node, dataset.klass.info.method("__init__")
    if not isinstance(node, ast.Call) or init is None or not node.args or isinstance(init.info.node, ast.Lambda):
        return ()
    spec = parameters(init.info.node)
    named = [n for n, d in spec.items() if isinstance(d, ast.Constant) and d.value == size]
    given = [k.arg for k in node.keywords if isinstance(k.value, ast.Constant) and k.value.value == size]
    name = given[0] if given else named[0] if len(named) == 1 else None
    rows = node.args[0]
    if name is None or not isinstance(rows, ast.Name) or len(node.args) != 1:
        return ()
    return Change(file, "shuffle over all rows").pass_argument(node, name, f"len({rows.id})").patches()


def with_workers(file: SourceFile, loader: ast.AST, waits: bool) -> tuple[Patch, ...]:
    """Workers for a loader whose samples take long; under a main guard, which spawned workers need."""
    code = syntax(file)
    if not isinstance(loader, ast.Call) or not file.mentions(_GUARD) or len(loader.args) > 5:
        return ()
    if code.function(loader) is None and not _guarded(code, loader):
        return ()
    workers = "8" if waits else "4"
    return Change(file, "fetch samples in workers").pass_argument(loader, "num_workers", workers).patches()


def _guarded(code: Syntax, node: ast.AST) -> bool:
    return any(isinstance(a, ast.If) and _GUARD.search(written(a.test)) for a in code.above(node))


def ordered_together(
    file: SourceFile, statement: ast.stmt, name: str, partner: str, how: str, other: ast.stmt | None
) -> tuple[Patch, ...]:
    """One order for both: indices sorted, shuffled or permuted once, then applied to inputs and labels."""
    code = syntax(file)
    taken = names_in(code.scope(statement))
    order = "order" if "order" not in taken else f"{name}_order"
    change = Change(file, f"put {name} and {partner} into the same order")
    if order in taken or statement.lineno != statement.end_lineno:
        return ()
    if how == "permuted":
        return _permuted(code, change, statement, name, partner, order, other)
    if other is not None or code.parent(statement) is None:
        return ()
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call):
        return ()
    moved = [_taken(code, statement, n, order) for n in (name, partner)]
    first = _sorted_indices(file, call, name, order) if how == "sorted" else _shuffled_indices(file, call, name, order)
    if first is None or None in moved:
        return ()
    return change.after(statement, "\n".join([*first, *(m for m in moved if m)])).delete(statement).patches()


def _permuted(
    code: Syntax, change: Change, statement: ast.stmt, name: str, partner: str, order: str, other: ast.stmt | None
) -> tuple[Patch, ...]:
    index = statement.value.slice if isinstance(statement, ast.Assign) and isinstance(
        statement.value, ast.Subscript) else None  # fmt: skip
    if index is None:
        return ()
    change.before(statement, f"{order} = {source_of(change.file, index)}").replace(index, order)
    if other is None:
        return change.after(statement, f"{partner} = {partner}[{order}]").patches()
    theirs = other.value.slice if isinstance(other, ast.Assign) and isinstance(other.value, ast.Subscript) else None
    return change.replace(theirs, order).patches() if code.parent(other) is code.parent(statement) else ()


def _taken(code: Syntax, statement: ast.stmt, name: str, order: str) -> str | None:
    """How the elements of a list or of an array are taken in an order."""
    bound = [v for s, v in code.bindings(_reader(code, statement, name)) if s.lineno < statement.lineno]
    made = bound[-1] if bound else None
    if isinstance(made, (ast.ListComp, ast.List)) or (
        isinstance(made, ast.Call) and last_name(made.func) in ("list", "sorted")
    ):
        return f"{name} = [{name}[i] for i in {order}]"
    if isinstance(made, ast.Call) and code.qualified(made.func).startswith(("torch.", "numpy.")):
        return f"{name} = {name}[{order}]"
    return None


def _reader(code: Syntax, statement: ast.stmt, name: str) -> ast.Name:
    node = ast.copy_location(ast.Name(name, ast.Load()), statement)
    code._walked[1][id(node)] = statement  # a name that could stand here
    _KEPT.append(node)
    return node


_KEPT: list[ast.Name] = []


def _sorted_indices(file: SourceFile, call: ast.Call, name: str, order: str) -> list[str] | None:
    """`order = sorted(range(len(x)), key=..., reverse=...)` of x.sort(...) or sorted(x, ...)."""
    key = argument(call, 99, "key")
    item = f"{name}[i]"
    if key is None:
        by = item
    elif isinstance(key, ast.Lambda) and len(key.args.args) == 1:
        by = re.sub(rf"\b{re.escape(key.args.args[0].arg)}\b", item, source_of(file, key.body))
    elif isinstance(key, (ast.Name, ast.Attribute)):
        by = f"{source_of(file, key)}({item})"
    else:
        return None
    backwards = argument(call, 99, "reverse")
    tail = f", reverse={source_of(file, backwards)}" if backwards is not None else ""
    return [f"{order} = sorted(range(len({name})), key=lambda i: {by}{tail})"]


def _shuffled_indices(file: SourceFile, call: ast.Call, name: str, order: str) -> list[str] | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    return [f"{order} = list(range(len({name})))", f"{source_of(file, call.func)}({order})"]


def scaled_alike(
    file: SourceFile, raw: ast.expr, scaled: ast.expr, scaling: ast.expr, inner: ast.expr
) -> tuple[Patch, ...]:
    """The scaling of the training input around the part of the other input that stands in the same place."""
    part = _same_place(scaled, raw, scaling)
    text, inside = source_of(file, scaling), source_of(file, inner)
    code = syntax(file)
    here, there = code.statement(raw), code.statement(scaled)
    if part is None or here is None or there is None or code.scope(raw) is not code.scope(scaled):
        return ()
    at = text.find(inside)
    if at < 0 or here.lineno < there.lineno or bound_between(code, there, here, names_in(scaling) - names_in(inner)):
        return ()
    before, after = text[:at], text[at + len(inside) :]
    if "\n" in text or inside in after:
        return ()
    return Change(file, "scale it as the training input").wrap(
        part, before.replace(".fit_transform(", ".transform("), after).patches()  # fmt: skip


def _same_place(scaled: ast.AST, raw: ast.AST, scaling: ast.AST) -> ast.expr | None:
    """The part of the raw expression that stands where the scaling stands in the other one."""
    if scaled is scaling:
        return raw if isinstance(raw, ast.expr) else None
    if type(scaled) is not type(raw):
        return None
    for one, other in zip(ast.iter_child_nodes(scaled), ast.iter_child_nodes(raw), strict=False):
        if any(n is scaling for n in below(one)):
            return _same_place(one, other, scaling)
    return None


def filled(file: SourceFile, scaling: ast.expr) -> tuple[Patch, ...]:
    """What is missing set to the mean, which is 0 after the scaling."""
    text = written(scaling)
    code = syntax(file)
    uses_torch = any(
        code.qualified(c.func).startswith("torch.") and "nan" in last_name(c.func) for c in code.of(ast.Call)
    )
    library = "torch" if uses_torch else next((k for k, v in code.aliases.items() if v == "numpy"), "")
    if not library or "nan_to_num" in text:
        return ()
    return Change(file, "set what is missing to the mean, 0 after scaling").wrap(
        scaling, f"{library}.nan_to_num(", ")").patches()  # fmt: skip
