"""A function of the step worked out at a few steps, where it is made of numbers alone.

Arithmetic, choices, `min`, `max` and the functions of `math` are followed; anything else gives no answer.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Sequence

from traindx_tools.on_code.lookup import Body, Lookup
from traindx_tools.on_code.syntax import Syntax, last_name, parameters

STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 500, 800, 1000, 2000, 3000, 4000, 5000, 8000, 10000, 16000, 20000,
         40000, 100000)  # fmt: skip
"""Usual warm-ups are among them, where such a function has its peak."""
_OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARED: dict[type, Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_CALLED: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "float": float, "int": int, "abs": abs, "pow": pow, "sqrt": math.sqrt, "exp": math.exp,
    "log": math.log, "cos": math.cos, "sin": math.sin, "rsqrt": lambda x: x**-0.5,
}  # fmt: skip
_DEEP = 40


class UnknownError(Exception):
    """Something that is no number here."""


def values(look: Lookup, code: Syntax, body: Body, steps: Iterable[float] = STEPS) -> list[float] | None:
    """What the function gives at each step; None where it depends on anything that the program does not fix."""
    names = [n for n in parameters(body) if n not in ("self", "cls")]
    if not names:
        return None
    found: list[float] = []
    try:
        for step in steps:
            found.append(_run(look, code, body, {names[0]: float(step)}))
    except (UnknownError, ArithmeticError, ValueError, TypeError):
        return None
    return found if all(isinstance(v, (int, float)) and math.isfinite(v) for v in found) else None


def _run(look: Lookup, code: Syntax, body: Body, known: dict[str, float], left: int = _DEEP) -> float:
    if isinstance(body, ast.Lambda):
        return _number(look, code, body.body, known, left)
    given = _block(look, code, body.body, known, left)
    if given is None:
        raise UnknownError
    return given


def _block(
    look: Lookup, code: Syntax, statements: Sequence[ast.stmt], known: dict[str, float], left: int
) -> float | None:
    for statement in statements:
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _number(look, code, statement.value, known, left)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if not isinstance(target, ast.Name):
                raise UnknownError
            known[target.id] = _number(look, code, statement.value, known, left)
        elif isinstance(statement, ast.If):
            side = statement.body if _number(look, code, statement.test, known, left) else statement.orelse
            given = _block(look, code, side, known, left)
            if given is not None:
                return given
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            raise UnknownError
    return None


def _number(look: Lookup, code: Syntax, node: ast.expr, known: dict[str, float], left: int) -> float:
    if left <= 0:
        raise UnknownError
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        one, two = (_number(look, code, n, known, left - 1) for n in (node.left, node.right))
        if isinstance(node.op, ast.Pow) and (abs(two) > 1e4 or abs(one) > 1e9):
            raise UnknownError
        return _OPERATIONS[type(node.op)](one, two)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(look, code, node.operand, known, left - 1)
    if isinstance(node, ast.IfExp):
        side = node.body if _number(look, code, node.test, known, left - 1) else node.orelse
        return _number(look, code, side, known, left - 1)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        one, two = (_number(look, code, n, known, left - 1) for n in (node.left, node.comparators[0]))
        return float(_COMPARED[type(node.ops[0])](one, two))
    if isinstance(node, ast.Call) and last_name(node.func) in _CALLED and not node.keywords:
        return _CALLED[last_name(node.func)](*(_number(look, code, a, known, left - 1) for a in node.args))
    if isinstance(node, ast.Call):
        return _of_function(look, code, node, known, left)
    if isinstance(node, ast.Attribute) and code.qualified(node) == "math.pi":
        return math.pi
    given = look.number(code, node)
    if given is None:
        raise UnknownError
    return given


def _of_function(look: Lookup, code: Syntax, call: ast.Call, known: dict[str, float], left: int) -> float:
    """A function of the project: numbers in, a number out. Parameters that are not given are looked up."""
    found = look.function(code, call.func)
    if found is None or left < 10:
        raise UnknownError
    names = [n for n in parameters(found[1]) if n not in ("self", "cls")]
    pairs = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg is not None)]
    given = {n: _number(look, code, a, known, left - 10) for n, a in pairs}
    return _run(look, found[0], found[1], given, left - 10)
