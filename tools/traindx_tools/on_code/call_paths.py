"""The way from the outermost loop to a place, through the only callers of the functions around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import FunctionNode, Loops, Syntax, written

Step = tuple[Syntax, ast.AST]
Call = tuple[Syntax, ast.Call]
_MOST_CALLS = 4


def path_to(look: Lookup, code: Syntax, node: ast.AST) -> list[Step]:
    """What stands around a node, innermost first; a function with one caller continues with what is around its call."""
    found: list[Step] = []
    for _ in range(_MOST_CALLS):
        body = None
        for up in code.above(node):
            if isinstance(up, FunctionNode):
                body = up
                break
            if isinstance(up, (ast.ClassDef, ast.Lambda)):
                break
            found.append((code, up))
        callers = look.callers(body, code) if body is not None else []
        if len(callers) != 1 or any(n is callers[0][1] for _, n in found):
            return found
        code, node = callers[0]
        found.append((code, node))
    return found


def loops_of(path: list[Step]) -> list[Step]:
    """The loops of a path, innermost first."""
    return [(c, n) for c, n in path if isinstance(n, Loops)]


def calls_by_text(look: Lookup, code: Syntax, node: ast.AST) -> dict[str, list[ast.Call]]:
    """The calls below a node, and those of the functions that are called there, by what is called; found once."""
    found = look.texts.get(id(node))
    if found is None:
        found = look.texts[id(node)] = {}
        called = {id(b[1]): b for c in code.inside(node, ast.Call) if (b := look.called(code, c)) is not None}
        bodies = [b for b in called.values() if b[1] is not node and not isinstance(b[1], ast.Lambda)]
        for home, body in ((code, node), *bodies):
            for call in home.inside(body, ast.Call):
                found.setdefault(written(call.func), []).append(call)
    return found


def reached_calls(look: Lookup, code: Syntax, node: ast.AST, left: int = 2) -> Iterator[Call]:
    """The calls below a node, and those of the project's functions that are called there."""
    for call in code.inside(node, ast.Call):
        yield code, call
        body = look.called(code, call) if left > 0 else None
        if body is not None and body[1] is not node and not isinstance(body[1], ast.Lambda):
            yield from reached_calls(look, *body, left - 1)
