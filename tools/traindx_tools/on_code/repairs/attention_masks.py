"""Masks the other way round, and numbers that fit every type."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import argument

_OPPOSITE: dict[type[ast.cmpop], str] = {ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}


def turned(file: SourceFile, call: ast.AST, name: str) -> tuple[Patch, ...]:
    """The opposite comparison where it stands in the call; else `~` before the mask, whose other readers keep it."""
    given = argument(call, 99, name) if isinstance(call, ast.Call) else None
    change = Change(file, "True where a position is to be ignored")
    if isinstance(given, ast.UnaryOp):
        return change.replace(given, source_of(file, given.operand)).patches()
    if isinstance(given, ast.Compare) and type(given.ops[0]) in _OPPOSITE:
        left, right = source_of(file, given.left), source_of(file, given.comparators[0])
        return change.replace(given, f"{left} {_OPPOSITE[type(given.ops[0])]} {right}").patches()
    return change.wrap(given, "~", "").patches() if isinstance(given, (ast.Name, ast.Attribute, ast.Call)) else ()


def smallest(file: SourceFile, call: ast.AST) -> tuple[Patch, ...]:
    """`torch.finfo(scores.dtype).min` in place of the number, for `scores.masked_fill(mask, number)`."""
    x = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    value = argument(call, 1, "value") if isinstance(call, ast.Call) else None
    if not isinstance(x, ast.Name) or x.id in ("torch", "F") or value is None:
        return ()
    return Change(file, "fits every type").replace(value, f"torch.finfo({x.id}.dtype).min").patches()
