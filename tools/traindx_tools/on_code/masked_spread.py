"""Standard deviations over the valid elements of a row, written out: sqrt((mask * (x - mean) ** 2).sum() / count)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

_GUARD = re.compile(r"maximum|clip|clamp|where|\beps|epsilon|EPS|tiny|1e-|nan_to_num")
_FORWARD = frozenset({"__call__", "forward", "encode", "pool", "embed"})
_ARRAYS = ("torch.", "jax.")


def spreads(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each such root in a module's forward pass with what stands under it; none with an epsilon or a lower bound."""
    for node, inside in _roots(code):
        body, owner = code.function(node), code.owner(node)
        if body is None or owner is None or body.name not in _FORWARD:
            continue
        if not any(last_name(b).endswith("Module") for b in owner.bases):
            continue
        whole = _followed(code, inside)
        if whole is not None and not _GUARD.search(" ".join(map(written, whole))) and any(
                _weighted_square(code, n) for part in whole for n in below(part)):  # fmt: skip
            yield node, inside


def _roots(code: Syntax) -> Iterator[tuple[ast.expr, ast.expr]]:
    for call in code.calls("sqrt"):
        name = code.qualified(call.func)
        if name.startswith(_ARRAYS) and call.args:
            yield call, call.args[0]
        elif not name and isinstance(call.func, ast.Attribute) and not call.args:
            yield call, call.func.value
    for power in code.of(ast.BinOp):
        if isinstance(power.op, ast.Pow) and code.number(power.right) == 0.5:
            yield power, power.left


def _followed(code: Syntax, node: ast.expr) -> list[ast.expr] | None:
    """An expression with what its names stand for, two steps back; None where one may be several things."""
    parts = [node]
    for name in (n for n in below(node) if isinstance(n, ast.Name)):
        made = code.assigned(name)
        if made is None and code.bindings(name):
            return None
        if made is not None:
            parts.append(made)
    return parts


def _weighted_square(code: Syntax, node: ast.AST) -> bool:
    """`mask * (x - mean) ** 2`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    for square, other in ((node.left, node.right), (node.right, node.left)):
        if _square_of_difference(code, square) and not isinstance(other, ast.Constant):
            return True
    return False


def _square_of_difference(code: Syntax, node: ast.expr) -> bool:
    inner: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and code.number(node.right) == 2:
        inner = node.left
    elif isinstance(node, ast.Call) and last_name(node.func) in ("square", "pow"):
        inner = node.func.value if not code.qualified(node.func) and isinstance(node.func, ast.Attribute) else (
            node.args[0] if node.args else None)  # fmt: skip
    if isinstance(inner, ast.Name):
        inner = code.assigned(inner)
    return isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)
