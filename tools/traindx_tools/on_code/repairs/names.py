"""Which names statements read and bind, for edits that move them."""

from __future__ import annotations

import ast

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax


def bound_between(code: Syntax, first: ast.stmt, last: ast.stmt, names: set[str]) -> bool:
    """Whether any of these names is bound on the lines from one statement up to, not including, another."""
    scope = code.scope(last)
    for node in below(scope):
        line = getattr(node, "lineno", 0)
        if not first.lineno <= line < last.lineno:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            return True
        if isinstance(node, (*FunctionNode, ast.ClassDef)) and node.name in names:
            return True
    return False


def reads(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {n.id for n in below(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
