"""A decay that counts from the beginning applied to the initial rate, and no longer to the current one (C233)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written


def from_the_initial_rate(code: Syntax, node: ast.Assign | ast.AugAssign, rate: ast.expr) -> tuple[Patch, ...]:
    """`self.lr = self.initial_lr / (1 + k * epoch)`, with the initial rate kept where the rate is first set."""
    change = Change(code.file, "apply the decay to the initial rate")
    initial = _initial(code, change, node, rate)
    if initial is None:
        return ()
    if isinstance(node, ast.Assign):
        value = node.value
        if not isinstance(value, ast.BinOp):
            return ()
        old = value.left if written(value.left) == written(rate) else value.right
        return change.replace(old, initial).patches()
    sign = {ast.Mult: "*", ast.Div: "/"}[type(node.op)]
    factor = source_of(code.file, node.value)
    loose = isinstance(node.value, (ast.IfExp, ast.BoolOp, ast.Compare)) or (isinstance(node.value, ast.BinOp) and (
        sign == "/" or isinstance(node.value.op, (ast.Add, ast.Sub, ast.FloorDiv, ast.Mod))))  # fmt: skip
    text = code.file.line(node.lineno).encode()[: node.value.col_offset].decode("utf-8", "replace")
    if node.lineno != node.end_lineno:
        return ()
    if loose and not text.rstrip().endswith("("):
        change.replace(node.value, f"({factor})")
    start, end = node.target.end_col_offset or 0, node.value.col_offset - (len(text) - len(text.rstrip("( ")))
    operator = text.encode()[start:end].decode()
    if operator.strip() != f"{sign}=":
        return ()
    change.edit(node.lineno, start, end, f" = {initial} {sign}")
    return change.patches()


def _initial(code: Syntax, change: Change, node: ast.stmt, rate: ast.expr) -> str | None:
    """How the initial rate is written; a line that keeps it is added where nothing does."""
    if isinstance(rate, ast.Subscript):
        group = source_of(code.file, rate.value)
        return f'{group}.setdefault("initial_lr", {source_of(code.file, rate)})'
    loops = code.loops(node)
    if isinstance(rate, ast.Attribute) and written(rate.value) == "self" and not loops:
        return _kept_in_init(code, change, node, rate)
    loop = loops[-1] if loops else None
    if not isinstance(loop, ast.stmt) or not isinstance(rate, (ast.Name, ast.Attribute)):
        return None
    name = f"initial_{last_name(rate)}"
    if name in names_in(code.scope(node)):
        return None
    change.before(loop, f"{name} = {source_of(code.file, rate)}")
    return name


def _kept_in_init(code: Syntax, change: Change, node: ast.stmt, rate: ast.Attribute) -> str | None:
    others = [(s, v) for s, v in code.bindings(rate) if s is not node]
    owner, function = code.owner(node), None
    if len(others) == 1:
        function = code.function(others[0][0])
    if owner is None or function is None or function.name != "__init__":
        return None
    statement, value = others[0]
    own = [n for n in below(owner) if isinstance(n, ast.Attribute) and written(n.value) == "self"]
    stored = {n.attr: code.bindings(n) for n in own if isinstance(n.ctx, ast.Store) and n.attr != rate.attr}
    for name, bound in stored.items():
        if len(bound) == 1 and isinstance(value, ast.Name) and written(bound[0][1]) == value.id and \
                code.function(bound[0][0]) is function:  # fmt: skip
            return f"self.{name}"
    name = f"initial_{rate.attr}"
    if any(n.attr == name for n in own):
        return None
    change.after(statement, f"self.{name} = self.{rate.attr}")
    return f"self.{name}"
