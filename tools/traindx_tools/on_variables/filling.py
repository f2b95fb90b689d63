"""The source line that puts something into a variable: `losses.append(loss)`, `total += loss`, `seen[step] = out`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ADDING = frozenset({"append", "appendleft", "extend", "add", "update", "insert", "setdefault", "put", "push"})
MOST_BYTES = 2_000_000


def line_that_fills(file: str, function: str, variable: str, owner: str = "") -> int | None:
    """1-based line, or None where the file cannot be read or shows no such line.

    A local is looked for in its own function first, an attribute in the class `owner` where that is given; calls that
    add and `+=` come before plain assignments, and before assignments together with others (`out, state = net(x)`).
    """
    tree = _tree(file)
    if tree is None:
        return None
    leaf = _leaf(variable)
    own = [n for n in ast.walk(tree) if (isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == function)
           or (isinstance(n, ast.ClassDef) and n.name == owner)]
    for scope in (*own, tree):
        found = sorted(_fillings(scope, leaf))
        if found:
            return found[0][1]
    return None


def line_that_makes(file: str, function: str, variable: str) -> int | None:
    """1-based line of the first assignment to a variable or an attribute, in its own function where it is there."""
    tree = _tree(file)
    if tree is None:
        return None
    leaf = _leaf(variable)
    own = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == function]
    for scope in (*own, tree):
        lines = [n.lineno for n in ast.walk(scope) if isinstance(n, (ast.Assign, ast.AnnAssign))
                 and any(leaf in _names(t) for t in (_targets(n) if isinstance(n, ast.Assign) else (n.target,)))]
        if lines:
            return min(lines)
    return None


def _leaf(variable: str) -> str:
    return variable.replace("[*]", "").split("(")[0].rstrip(".").split(".")[-1]


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        if Path(file).stat().st_size > MOST_BYTES:
            return None
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _fillings(scope: ast.AST, leaf: str) -> Iterator[tuple[int, int]]:
    """(0 for adding, 1 for assigning from itself; line)."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            if leaf in _names(node.func.value):
                yield 0, node.lineno
        elif isinstance(node, ast.AugAssign) and leaf in _names(node.target):
            yield 0, node.lineno
        elif isinstance(node, ast.Assign) and any(leaf in _names(t) for t in _targets(node)):
            if any(isinstance(t, ast.Subscript) and leaf in _names(t.value) for t in _targets(node)):
                yield 0, node.lineno
            elif any(leaf in _names(part) for part in ast.walk(node.value)):
                yield 1, node.lineno


def _targets(node: ast.Assign) -> Iterator[ast.expr]:
    """What is assigned to, with the parts of `out, state = ...` one by one."""
    for target in node.targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)


def _names(node: ast.AST) -> frozenset[str]:
    """The last name of a target: `self.losses[k]` is `losses`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return frozenset({node.attr})
    return frozenset({node.id}) if isinstance(node, ast.Name) else frozenset()
