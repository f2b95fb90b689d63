"""Iterators that give their elements once, and are gone through again: the second time there is nothing.

`params = model.parameters()` (or `filter(...)`, a generator expression) is used up by the optimizer that gets it. Who
freezes, counts or averages `params` afterwards does so to nothing, without an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, written
from traindx_tools.program.uses import UnusedResult

_ONCE = words("results.toml", "once")
_TAKES = words("results.toml", "goes_through")
_BUILTINS = frozenset({"filter", "map", "zip"})
_TOLD = words("results.toml", "asked_by_follower")
"""What is told elsewhere where it gets nothing: optimizers and clips, to which the follower follows the values."""


def spent(look: Lookup) -> Iterator[UnusedResult]:
    """Every name that stands for such an iterator and is gone through more than once."""
    for code in look.codes:
        for made in code.of(ast.Assign):
            name = made.targets[0] if len(made.targets) == 1 else None
            if isinstance(name, ast.Name) and _gives_once(look, code, made.value):
                yield from _again(code, made, name)


def _gives_once(look: Lookup, code: Syntax, value: ast.expr) -> bool:
    """Whether it is a generator, a builtin that gives one, or a method of modules that the project has not made anew:
    data sets, frames and trees have a `map` and a `filter` that give the like of themselves."""
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.GeneratorExp)
    name = last_name(value.func)
    if isinstance(value.func, ast.Name):
        return name in _BUILTINS and not code.functions(name) and not code.bindings(value.func)
    return name in _ONCE and name not in _BUILTINS and not look.functions.get(name)


def _again(code: Syntax, made: ast.Assign, name: ast.Name) -> Iterator[UnusedResult]:
    scope = code.scope(made)
    if len(code.bindings(name)) != 1 or not isinstance(scope, (*FunctionNode, ast.Module)):
        return
    uses = [(r, by) for r in code.reads(scope, name.id) if r.lineno >= made.lineno and code.scope(r) is scope
            and (by := _taker(code, r)) is not None]
    uses.sort(key=lambda u: (u[0].lineno, u[0].col_offset))
    around = {id(loop) for loop in code.loops(made)}
    for place, (read, by) in enumerate(uses):
        turns = [loop for loop in code.loops(read) if id(loop) not in around and loop is not by]
        if last_name(getattr(by, "func", None)) in _TOLD:
            continue
        before = [u for u in uses[:place] if not code.apart(u[0], read)]
        if before or (turns and not _leaves(turns[0])):
            first = before[0][0] if before else read
            yield UnusedResult("spent", written(made.value)[:60], code.spot(read), name.id, other=code.at(first))
            return


def _taker(code: Syntax, read: ast.Name) -> ast.AST | None:
    """What goes through it: a call that takes all of it, or a loop that does not end early."""
    up = code.parent(read)
    if isinstance(up, ast.Call) and read in up.args and last_name(up.func) in _TAKES:
        return up
    if isinstance(up, (ast.For, ast.comprehension)) and up.iter is read:
        return None if isinstance(up, ast.For) and _leaves(up) else up
    return up if isinstance(up, ast.keyword) and last_name(getattr(code.parent(up), "func", None)) in _TAKES else None


def _leaves(loop: ast.AST) -> bool:
    """Whether a loop is left before its end."""
    return any(isinstance(n, (ast.Break, ast.Return)) for n in below(loop))
