"""Where a name is bound again between its use and the function of that name: it means something else there."""

from __future__ import annotations

import ast

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.syntax import FunctionNode, Syntax

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def shadows(code: Syntax, scope: ast.AST, inside: ast.AST, name: str) -> bool:
    """Whether a scope around a use binds the name by a parameter, an assignment, a loop or an import.

    `inside`: the child of the scope that holds the use; a default or a decorator stands outside the function's names.
    """
    if isinstance(scope, _COMPREHENSIONS):
        return id(scope) in _bindings(code).get(name, ())
    if isinstance(scope, ast.Lambda):
        return inside is scope.body and name in _parameters(scope.args)
    if isinstance(scope, FunctionNode):
        own = name in _parameters(scope.args) or id(scope) in _bindings(code).get(name, ())
        return own and any(inside is s for s in scope.body)
    return False


def _parameters(spec: ast.arguments) -> set[str]:
    """Every parameter, but one that is the outer thing of this name unless it is given: `def g(x, f=f)`."""
    plain = [*spec.posonlyargs, *spec.args]
    defaults = dict(zip([a.arg for a in reversed(plain)], reversed(spec.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    named = {a.arg for a in (*plain, *spec.kwonlyargs, *(s for s in (spec.vararg, spec.kwarg) if s is not None))}
    return {n for n in named if not (isinstance(d := defaults.get(n), ast.Name) and d.id == n)}


@kept
def _bindings(code: Syntax) -> dict[str, set[int]]:
    """By name the functions and comprehensions that bind it, without parameters."""
    known = {name: {id(_binder(code, node)) for node in nodes} for name, nodes in code.stores.items()}
    for alias in code.of(ast.alias):
        known.setdefault((alias.asname or alias.name).split(".")[0], set()).add(id(code.function(alias)))
    for handler in code.of(ast.ExceptHandler):
        known.setdefault(handler.name or "", set()).add(id(code.function(handler)))
    declared = [(o, o.names) for o in code.of(ast.Global)] + [(o, o.names) for o in code.of(ast.Nonlocal)]
    for outer, names in declared:
        for name in names:
            known.get(name, set()).discard(id(code.function(outer)))
    return known


def _binder(code: Syntax, name: ast.Name) -> ast.AST | None:
    """The comprehension or function whose name it is; None at module or class level."""
    inside: ast.AST = name
    for up in code.above(name):
        if isinstance(up, ast.comprehension) and inside is up.target:
            return code.parent(up)
        if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef)):
            return up if isinstance(up, FunctionNode) else None
        inside = up
    return None
