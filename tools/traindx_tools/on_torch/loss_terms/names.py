"""What the program calls the value that a line makes: the variable it is assigned to, or the returning function."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

MOST_BYTES = 2_000_000


@cache
def name_at(file: str, line: int) -> str | None:
    """`kl` for `kl = ...`, `losses["kl"]` gives `kl`, `return ...` the function's name; None where nothing says so."""
    tree = _tree(file)
    if tree is None:
        return None
    best: tuple[int, str] | None = None
    for function in (None, *(n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))):
        for node in ast.walk(function or tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                name = _said(node, function.name if function is not None else None)
                if name and (best is None or node.lineno >= best[0]):
                    best = node.lineno, name
    return best[1] if best else None


def _said(node: ast.stmt, function: str | None) -> str | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _target(node.targets[0])
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return _target(node.target) if isinstance(node, ast.AnnAssign) else None
    return function if isinstance(node, ast.Return) else None


def _target(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return None


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        if not file or Path(file).stat().st_size > MOST_BYTES:
            return None
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
