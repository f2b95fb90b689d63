"""The terms of a written sum, and what stands in an exponential."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.syntax import last_name


def addends(node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """(1 or -1, term) of `a - (b + c) - -d`: +a, -b, -c, +d."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from addends(node.left, sign)
        yield from addends(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from addends(node.operand, -sign)
    else:
        yield sign, node


def exponent(node: ast.AST | None) -> ast.expr | None:
    """x of `exp(x)`, `x.exp()` and `x.exp_()`, None for anything else."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("exp", "exp_"):
        return None
    return node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
