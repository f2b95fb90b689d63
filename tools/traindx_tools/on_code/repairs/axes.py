"""Another axis for what is pooled or normalised (C134, C350)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import argument, last_name, syntax

_POOLS = ("sum", "mean", "amax", "max")


def pooled_over_time(file: SourceFile | None, line: int) -> tuple[Patch, ...]:
    """Axis 1 for every sum or mean over axis 0 in the statement of a line."""
    if file is None:
        return ()
    code = syntax(file)
    statements = {id(s): s for c in code.calls(*_POOLS) if (s := code.statement(c)) is not None
                  and s.lineno <= line <= (s.end_lineno or s.lineno)}  # fmt: skip
    if len(statements) != 1:
        return ()
    (statement,) = statements.values()
    change = Change(file, "pool over time, not over the batch")
    for call in (n for n in below(statement) if isinstance(n, ast.Call) and last_name(n.func) in _POOLS):
        own = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
        axis = argument(call, 0 if own else 1, "dim", "axis")
        if isinstance(axis, ast.Constant) and axis.value == 0:
            change.replace(axis, "1")
    return change.patches()


def over_classes(file: SourceFile, call: ast.AST) -> tuple[Patch, ...]:
    """The last axis where another one is written in a call."""
    given = argument(call, 99, "dim", "axis") if isinstance(call, ast.Call) else None
    value = given if given is not None else call.args[-1] if isinstance(call, ast.Call) and call.args else None
    if not isinstance(value, (ast.Constant, ast.UnaryOp)):
        return ()
    return Change(file, "normalise over the classes").replace(value, "-1").patches()
