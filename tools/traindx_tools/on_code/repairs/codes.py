"""Codebooks (C126) and groups of rollouts (C127)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.schedule import bound_between, reads
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import names_in, syntax, written


def averages_too(file: SourceFile, node: ast.AST, average: str, sizes: tuple[str, ...]) -> tuple[Patch, ...]:
    """What is written into the codebook written into its moving sum as well, with a count of one."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if not isinstance(node, ast.Assign) or not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Tuple):
        return ()
    index = source_of(file, target.slice)
    value = (
        source_of(file, node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else source_of(file, target)
    )
    lines = [f"self.{average}[{index}] = {value}", *(f"self.{size}[{index}] = 1.0" for size in sizes)]
    if len(sizes) != 1 or "\n" in index:
        return ()
    return Change(file, "reset the moving sum and the count of these codes too").after(node, "\n".join(lines)).patches()


def named_before_repeating(file: SourceFile, node: ast.Assign, owner: str, line: int) -> tuple[Patch, ...]:
    """The ids given before the batch is repeated, so that the copies of a row share one."""
    code = syntax(file)
    repeat = next((s for s in code.of(ast.Assign) if s.lineno == line and written(s.targets[0]) == owner), None)
    if repeat is None or code.parent(repeat) is not code.parent(node):
        return ()
    change = Change(file, "give the ids before the batch is repeated")
    call = repeat.value
    method = call.func if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    if isinstance(call, ast.Call) and method is not None and written(method.value) == owner:
        return (
            ()
            if bound_between(code, repeat, node, reads(node) - {owner})
            else change.move_before(node, repeat).patches()
        )
    block = change.block(repeat)
    if method is None or block.index(node) != block.index(repeat) + 1 or repeat.end_lineno != repeat.lineno:
        return ()
    if owner in names_in(call) or node.end_lineno != node.lineno:
        return ()
    tail = source_of(file, call)[len(source_of(file, method.value)) :]
    return change.unwrap(call, method.value).after(node, f"{owner} = {owner}{tail}").patches()
