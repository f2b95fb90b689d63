"""Unsafe branches of where (C502) and carries of the wrong type (C504)."""

from __future__ import annotations

import ast
import re

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.schedule import bound_between
from traindx_tools.on_code.repairs.written import operand
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, syntax

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


def float_carry(file: SourceFile, call: ast.AST, position: int, name: str, entry: str) -> tuple[Patch, ...]:
    """The entry of an initial carry as a float, where it is written as an int."""
    init = argument(call, position, name) if isinstance(call, ast.Call) else None
    leaf = _leaf(syntax(file), init, re.findall(r"\[('?)([^\]']*)'?\]", entry))
    return _as_float(file, leaf) if leaf is not None else ()


def float_at(file: SourceFile, line: int) -> tuple[Patch, ...]:
    """The one array of integers that is made on a line as an array of floats."""
    made = [p for c in syntax(file).of(ast.Call) if c.lineno == line and (p := _as_float(file, c))]
    return made[0] if len(made) == 1 else ()


def _as_float(file: SourceFile, leaf: ast.expr) -> tuple[Patch, ...]:
    change = Change(file, "start the carry as a float")
    if isinstance(leaf, ast.Constant) and type(leaf.value) is int:
        return change.replace(leaf, f"{leaf.value}.0").patches()
    if not isinstance(leaf, ast.Call):
        return ()
    if last_name(leaf.func) in ("array", "asarray") and leaf.args and isinstance(leaf.args[0], ast.Constant):
        value = leaf.args[0].value
        return change.replace(leaf.args[0], f"{value}.0").patches() if type(value) is int else ()
    at = {"zeros": 1, "ones": 1, "full": 2, "array": 1, "asarray": 1, "empty": 1}.get(last_name(leaf.func), 99)
    dtype = argument(leaf, at, "dtype")
    if isinstance(dtype, ast.Name) and dtype.id == "int":
        return change.replace(dtype, "float").patches()
    if isinstance(dtype, ast.Attribute) and dtype.attr in ("int32", "int64", "int16", "int8", "uint32"):
        return change.replace(dtype, f"{source_of(file, dtype.value)}.float32").patches()
    return ()


def _leaf(code: Syntax, node: ast.expr | None, path: list[tuple[str, str]]) -> ast.expr | None:
    """The expression of an entry, through names and the one return of a function of the file."""
    for _ in range(12):
        if node is None:
            return None
        origin = code.origin(node)
        if isinstance(origin, ast.Call) and isinstance(origin.func, ast.Name):
            returned = _returned(code, origin.func.id)
            origin = returned if returned is not None else origin
        if not path:
            return origin
        quoted, key = path[0]
        if isinstance(origin, ast.Dict):
            node = next((v for k, v in zip(origin.keys, origin.values, strict=True)
                         if isinstance(k, ast.Constant) and str(k.value) == key), None)  # fmt: skip
        elif isinstance(origin, (ast.Tuple, ast.List)) and not quoted and key.isdigit() and int(key) < len(origin.elts):
            node = origin.elts[int(key)]
        else:
            return None
        path = path[1:]
    return None


def _returned(code: Syntax, name: str) -> ast.expr | None:
    made = code.functions(name)
    if len(made) != 1:
        return None
    returns = [n for n in below(made[0]) if isinstance(n, ast.Return)
               and next((a for a in code.above(n) if isinstance(a, FunctionNode)), None) is made[0]]  # fmt: skip
    return returns[0].value if len(returns) == 1 else None
