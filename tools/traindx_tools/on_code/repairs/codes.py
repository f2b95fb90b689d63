"""Codebooks (C126) and groups of rollouts (C127)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile


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
