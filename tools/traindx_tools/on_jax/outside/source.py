"""The syntax of a function that exists, and the names that are its own."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

Function = ast.FunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def node_of(code: CodeType) -> Function | None:
    """The definition that was compiled to this code; None where it cannot be told."""
    found = [n for n in _functions(code.co_filename) if _first(n) == code.co_firstlineno and _name(n) == code.co_name
             and [a.arg for a in _positional(n)] == list(code.co_varnames[:code.co_argcount])]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=64)
def _functions(file: str) -> tuple[Function, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda)))


def _first(node: Function) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def _name(node: Function) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else "<lambda>"


def _positional(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args]


def parameters(node: Function) -> list[str]:
    """The names of the positional parameters, in order."""
    return [a.arg for a in _positional(node)]


def own_names(node: Function) -> set[str]:
    """Every name that is bound anywhere within it, in functions and comprehensions within it too."""
    outer = {name for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    found = set(_bound(node))
    return found - outer | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}


def _bound(node: Function) -> Iterator[str]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            yield n.id
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and n is not node:
            yield n.name
        elif isinstance(n, ast.alias):
            yield (n.asname or n.name).split(".")[0]
        elif isinstance(n, ast.ExceptHandler) and n.name:
            yield n.name


def rebound(node: Function) -> set[str]:
    """Names that are bound again, or in a function within: a parameter of one of these names is not followed."""
    inner = {a.arg for n in ast.walk(node) if isinstance(n, _SCOPES) and n is not node
             for a in ast.walk(n.args) if isinstance(a, ast.arg)}
    return inner | set(_bound(node))


def assigned_once(node: Function) -> set[str]:
    """Names with a single binding in the whole definition, an assignment."""
    names = list(_bound(node)) + [a.arg for a in ast.walk(node) if isinstance(a, ast.arg)]
    plain = {t.id for n in ast.walk(node) if isinstance(n, ast.Assign) and len(n.targets) == 1
             for t in n.targets if isinstance(t, ast.Name)}
    return {name for name in plain if names.count(name) == 1}


def stored(node: Function) -> set[str]:
    """What the function itself sets outside: `counter`, `self.calls`, `seen['n']`, as text."""
    outer = {name for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    parts = {ast.unparse(n) for n in ast.walk(node)
             if isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load)}
    return parts | {name for name in _bound(node) if name in outer}
