"""Replicas that share what is thawed later (C298)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.syntax import Syntax, written


def wrapped_again(code: Syntax, thaw: ast.AST, wrapper: ast.AST) -> tuple[Patch, ...]:
    """`net = DDP(net.module, ...)` behind what unfreezes a part, so that the hooks cover what is trained now."""
    made, statement = code.statement(wrapper), code.statement(thaw)
    loop = code.parent(statement) if statement is not None else None
    if isinstance(loop, ast.For) and loop.body == [statement]:
        statement = loop
    target = made.targets[0] if isinstance(made, ast.Assign) and made.value is wrapper else None
    if not isinstance(wrapper, ast.Call) or not wrapper.args or statement is None or target is None:
        return ()
    own = isinstance(target, ast.Attribute) and written(target.value) == "self"
    near = code.owner(thaw) is code.owner(wrapper) is not None if own else (
        isinstance(target, ast.Name) and code.scope(thaw) is code.scope(wrapper))  # fmt: skip
    text, first = source_of(code.file, wrapper), source_of(code.file, wrapper.args[0])
    if not near or "\n" in text or not text.startswith(f"{source_of(code.file, wrapper.func)}({first}"):
        return ()
    name = written(target)
    if any(written(other.value) == name for other in code.of(ast.Assign)):
        return ()  # the old wrapper would go on under another name
    again = text.replace(f"({first}", f"({name}.module", 1)
    return Change(code.file, "wrap the model again").after(statement, f"{name} = {again}").patches()
