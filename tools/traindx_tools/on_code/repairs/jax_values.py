"""Unsafe branches of where (C502)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.forms import operand
from traindx_tools.on_code.repairs.names import bound_between
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax

_HARMLESS = {
    "exp": "0.0", "expm1": "0.0", "log": "1.0", "log2": "1.0", "log10": "1.0", "log1p": "0.0", "sqrt": "1.0",
    "rsqrt": "1.0", "power": "1.0", "pow": "1.0", "reciprocal": "1.0", "arccos": "0.0", "arcsin": "0.0",
    "acos": "0.0", "asin": "0.0", "arctanh": "0.0", "atanh": "0.0",
}  # fmt: skip
"""An argument at which each function and its derivative are finite."""


def safe_inside(file: SourceFile, where: ast.Call, unsafe: ast.expr, second: bool) -> tuple[Patch, ...]:
    """The same condition inside the function: where(c, f(where(c, x, harmless)), other)."""
    code = syntax(file)
    condition, branch = where.args[0], where.args[2 if second else 1]
    inner, value = _operand(code, unsafe)
    if inner is None or value is None:
        return ()
    if not any(n is unsafe for n in below(branch)) and _moved(code, where, unsafe, condition):
        return ()
    text = f"{source_of(file, where.func)}({source_of(file, condition)}, "
    before, after = (text, f", {value})") if not second else (f"{text}{value}, ", ")")
    if "\n" in text:
        return ()
    return (
        Change(file, "make the excluded elements harmless inside the function too").wrap(inner, before, after).patches()
    )


def _moved(code: Syntax, where: ast.Call, unsafe: ast.expr, condition: ast.expr) -> bool:
    """Whether the condition cannot be written at the earlier line on which the unsafe part stands."""
    here, there = code.statement(where), code.statement(unsafe)
    return here is None or there is None or bound_between(code, there, here, names_in(condition))


def _operand(code: Syntax, unsafe: ast.expr) -> tuple[ast.expr | None, str | None]:
    if isinstance(unsafe, ast.BinOp):
        return unsafe.right, "1.0"
    if isinstance(unsafe, ast.Call):
        return operand(code, unsafe), _HARMLESS.get(last_name(unsafe.func))
    return None, None
