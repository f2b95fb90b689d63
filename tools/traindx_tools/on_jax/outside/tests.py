"""Which branch a condition takes whose values are known; nothing of the user's is run for it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from traindx_tools.on_jax.outside.paths import MISSING, Path

_PLAIN = (bool, int, float, str, bytes, type(None))
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}


def truth(node: ast.expr, path_of: Callable[[ast.expr], Path | None]) -> bool | None:
    """Whether it holds now, None where that cannot be told."""
    found = _value(node, path_of)
    return None if found is MISSING else bool(found)


def _value(node: ast.expr, path_of: Callable[[ast.expr], Path | None]) -> Any:
    """A plain value, MISSING where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _value(node.operand, path_of)
        return MISSING if inner is MISSING else not inner
    if isinstance(node, ast.BoolOp):
        return _joined(node, path_of)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, path_of)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        each = [_value(e, path_of) for e in node.elts]
        return MISSING if any(e is MISSING for e in each) else tuple(each)
    path = path_of(node)
    found = path.value() if path is not None else MISSING
    return found if isinstance(found, _PLAIN) else MISSING


def _joined(node: ast.BoolOp, path_of: Callable[[ast.expr], Path | None]) -> Any:
    each = [_value(v, path_of) for v in node.values]
    decides = isinstance(node.op, ast.Or)
    if any(e is not MISSING and bool(e) is decides for e in each):
        return decides
    return MISSING if any(e is MISSING for e in each) else not decides


def _compared(node: ast.Compare, path_of: Callable[[ast.expr], Path | None]) -> Any:
    sides = _value(node.left, path_of), _value(node.comparators[0], path_of)
    if any(side is MISSING for side in sides):
        return MISSING
    try:
        return _COMPARED[type(node.ops[0])](*sides)
    except TypeError:
        return MISSING
