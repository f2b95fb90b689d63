"""The way from the outermost loop to a place, through the only callers of the functions around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import FunctionNode, Syntax

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


def reached_calls(look: Lookup, code: Syntax, node: ast.AST, left: int = 2) -> Iterator[Call]:
    """The calls below a node, and those of the project's functions that are called there."""
    for call in code.inside(node, ast.Call):
        yield code, call
        body = look.called(code, call) if left > 0 else None
        if body is not None and body[1] is not node and not isinstance(body[1], ast.Lambda):
            yield from reached_calls(look, *body, left - 1)
