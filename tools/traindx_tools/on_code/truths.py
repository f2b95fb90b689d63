"""Whether a condition holds for a given value of a counter: true, false, or not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from traindx_tools.on_code.syntax import written

Known = Callable[[ast.expr], "float | None"]


def holds(test: ast.expr, values: Mapping[str, float], known: Known) -> bool | None:
    """The truth of a condition: `values` by the text of a name, `known` for the numbers of other expressions."""
    if isinstance(test, ast.BoolOp):
        parts = [holds(v, values, known) for v in test.values]
        decides = isinstance(test.op, ast.Or)
        return decides if decides in parts else None if None in parts else not decides
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = holds(test.operand, values, known)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        a, b = amount(test.left, values, known), amount(test.comparators[0], values, known)
        return None if a is None or b is None else _compared(test.ops[0], a, b)
    if isinstance(test, ast.Call) and written(test.func) == "bool" and len(test.args) == 1:
        return holds(test.args[0], values, known)
    number = amount(test, values, known)
    return None if number is None else number != 0


def amount(node: ast.expr, values: Mapping[str, float], known: Known) -> float | None:
    """The number of an expression."""
    if isinstance(node, (ast.Name, ast.Attribute)) and written(node) in values:
        return values[written(node)]
    if isinstance(node, ast.BinOp):
        a, b = amount(node.left, values, known), amount(node.right, values, known)
        if a is None or b is None:
            return None
        if isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            return None if not b else a % b if isinstance(node.op, ast.Mod) else a // b
        return {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}.get(type(node.op))
    return known(node)


def _compared(op: ast.cmpop, a: float, b: float) -> bool | None:
    table = {ast.Eq: a == b, ast.NotEq: a != b, ast.Lt: a < b, ast.LtE: a <= b, ast.Gt: a > b, ast.GtE: a >= b}
    return table.get(type(op))
