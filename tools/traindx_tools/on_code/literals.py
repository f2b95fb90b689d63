"""The plain value of an expression that is written in constants: `2 ** 14`, `-1e-3`."""

from __future__ import annotations

import ast

from traindx_tools.on_code.nodes import computed
from traindx_tools.on_code.values import finite_or_inf

NOTHING = object()
"""What is no plain value."""


def literal(node: ast.expr) -> object:
    """The plain value of an expression of constants (`2 ** 14`, `-1e-3`), else a marker that equals nothing plain."""
    if isinstance(node, ast.Constant):
        return finite_or_inf(node.value) if is_plain(node.value) else NOTHING
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = literal(node.operand)
        return -inner if isinstance(node.op, ast.USub) and isinstance(inner, (int, float)) else inner
    if isinstance(node, ast.BinOp):
        left, right = literal(node.left), literal(node.right)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)) and abs(left) < 1e9 and abs(right) < 1e9:
            return _computed(node.op, left, right)
    return NOTHING


def _computed(op: ast.operator, left: float, right: float) -> object:
    if isinstance(op, ast.Pow):
        return (left**right if abs(right) <= 64 and abs(left) <= 64 and (left > 0 or right == int(right)) and left
            else NOTHING)
    result = computed(op, left, right)
    return NOTHING if result is None else result


def is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 200)
