"""Index expressions as linear forms: `pos + 1 - width` is {"pos": 1, "width": -1, "": 1}."""

from __future__ import annotations

import ast

from traindx_tools.on_code.syntax import Syntax, written

_MOST_NAMES = 4
_UNIT = ""


def linear(code: Syntax, node: ast.expr, left: int = _MOST_NAMES) -> dict[str, float] | None:
    """Coefficients by symbol ("" for the constant), local names followed to their sums; None where not linear."""
    if isinstance(node, ast.Constant):
        number = node.value
        return {_UNIT: float(number)} if isinstance(number, int) and not isinstance(number, bool) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _scaled(linear(code, node.operand, left), -1.0)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _sum(linear(code, node.left, left), linear(code, node.right, left),
                    1.0 if isinstance(node.op, ast.Add) else -1.0)  # fmt: skip
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        a, b = linear(code, node.left, left), linear(code, node.right, left)
        for known, other in ((a, b), (b, a)):
            if known is not None and set(known) <= {_UNIT}:
                return _scaled(other, known.get(_UNIT, 0.0))
        return {written(node): 1.0}
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = code.assigned(node) if left > 0 and isinstance(node, ast.Name) else None
        inner = linear(code, made, left - 1) if isinstance(made, (ast.BinOp, ast.Name)) else None
        return inner if inner is not None else {written(node): 1.0}
    return {written(node): 1.0} if isinstance(node, (ast.Call, ast.Subscript)) else None


def difference(code: Syntax, a: ast.expr, b: ast.expr) -> float | None:
    """a - b where it is a number whatever the names hold, else None."""
    form = _sum(linear(code, a), linear(code, b), -1.0)
    if form is None or any(v for k, v in form.items() if k != _UNIT):
        return None
    return form.get(_UNIT, 0.0)


def _scaled(form: dict[str, float] | None, by: float) -> dict[str, float] | None:
    return None if form is None else {k: v * by for k, v in form.items()}


def _sum(a: dict[str, float] | None, b: dict[str, float] | None, sign: float) -> dict[str, float] | None:
    if a is None or b is None:
        return None
    return {k: a.get(k, 0.0) + sign * b.get(k, 0.0) for k in {*a, *b}}
