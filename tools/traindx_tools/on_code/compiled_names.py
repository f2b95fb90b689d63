"""Names by which compiled functions are called: decorated ones, `step = jit(f)`, `self._step = jit(self._f)`, and what
a factory returns (`update = make_update()`). A name means the function of the innermost scope that binds it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written


@dataclass(frozen=True)
class Compiled:
    """A name of a compiled function: where it is bound, and the decorator or call that compiles."""

    code: Syntax
    scope: ast.AST
    made: ast.expr
    function: ast.FunctionDef | None
    """The decorated function."""
    method: bool
    """Whether it is a decorated method, whose first argument is self."""


Names = dict[str, list[Compiled]]


def compiled_names(codes: Iterable[Syntax], wanted: Callable[[Syntax, ast.expr], bool]) -> Names:
    """Every name of a function that a wanted decorator or call compiles."""
    found: Names = {}
    for code in codes:
        for name, one in _names(code, wanted):
            found.setdefault(name, []).append(one)
    return found


def _names(code: Syntax, wanted: Callable[[Syntax, ast.expr], bool]) -> Iterator[tuple[str, Compiled]]:
    for function in code.of(ast.FunctionDef):
        for decorator in function.decorator_list:
            if wanted(code, decorator):
                yield from _decorated(code, function, decorator)
    for call in code.of(ast.Call):
        up = code.parent(call)
        if isinstance(up, ast.FunctionDef) or not wanted(code, call):
            continue
        if isinstance(up, ast.Call) and up.func is call:  # partial(jit, donate_argnums=0)(step)
            up = code.parent(up)
        if isinstance(up, ast.Assign):
            yield from _targets(code, up, call, None)
        elif isinstance(up, ast.Return):
            maker = code.function(up)
            yield from _made_by(code, maker.name, call, None) if maker is not None else ()


def _decorated(code: Syntax, function: ast.FunctionDef, decorator: ast.expr) -> Iterator[tuple[str, Compiled]]:
    owner = code.parent(function)
    method = isinstance(owner, ast.ClassDef)
    scope = owner if method and owner is not None else code.scope(function)
    yield function.name, Compiled(code, scope, decorator, function, method)
    maker = code.function(function) if not method else None
    if maker is not None and any(isinstance(n, ast.Return) and last_name(n.value) == function.name
                                 for n in below(maker)):  # fmt: skip
        yield from _made_by(code, maker.name, decorator, function)


def _targets(code: Syntax, bound: ast.Assign, made: ast.expr,
             function: ast.FunctionDef | None) -> Iterator[tuple[str, Compiled]]:  # fmt: skip
    for target in bound.targets:
        if isinstance(target, ast.Tuple) and isinstance(bound.value, ast.Tuple):
            continue
        scope = code.owner(bound) if isinstance(target, ast.Attribute) else code.scope(bound)
        if last_name(target):
            yield last_name(target), Compiled(code, scope or code.file.tree, made, function, False)


def _made_by(code: Syntax, maker: str, made: ast.expr,
             function: ast.FunctionDef | None) -> Iterator[tuple[str, Compiled]]:  # fmt: skip
    for call in code.calls(maker):
        up = code.parent(call)
        if isinstance(up, ast.Assign) and up.value is call:
            yield from _targets(code, up, made, function)
        elif isinstance(up, ast.Tuple) and isinstance(code.parent(up), ast.Assign):
            bound = code.parent(up)
            names = bound.targets[0] if isinstance(bound, ast.Assign) else None
            if isinstance(names, ast.Tuple) and len(names.elts) == len(up.elts):
                target = names.elts[up.elts.index(call)]
                if isinstance(target, ast.Name):
                    yield target.id, Compiled(code, code.scope(call), made, function, False)


def meant(code: Syntax, call: ast.Call, names: Names) -> Compiled | None:
    """The compiled function that a call means; None where it is another one, or not certain."""
    name = last_name(call.func)
    among = names.get(name)
    if not among:
        return None
    if isinstance(call.func, ast.Attribute):
        owner = code.owner(call) if written(call.func.value) == "self" else None
        return next((d for d in among if d.scope is owner), None) if owner is not None else None
    if not isinstance(call.func, ast.Name):
        return None
    for scope in (*(a for a in code.above(call) if isinstance(a, FunctionNode)), code.file.tree):
        own = [d for d in among if d.scope is scope]
        if own:
            return own[0] if len(own) == 1 else None
        if isinstance(scope, FunctionNode) and (name in parameters(scope) or any(
                isinstance(n, FunctionNode) and n.name == name for n in scope.body)):  # fmt: skip
            return None
    imported = [d for d in among if d.code is not code and isinstance(d.scope, ast.Module)]
    return imported[0] if len(imported) == 1 and name in code.aliases else None
