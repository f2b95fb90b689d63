"""A divisor that is kept from 0 (C131, C138)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event

EPSILON = "1e-6"
"""Small beside any spread of interest, and still above the smallest float16 (6e-8)."""


def with_epsilon(division: Event) -> tuple[Patch, ...]:
    """`x / (std + 1e-6)`."""
    divisor = _divisor(division)
    if divisor is None:
        return ()
    change = Change(division.file, "keep the divisor from 0")
    return change.replace(divisor, f"{source_of(division.file, divisor)} + {EPSILON}").patches()


def at_least_one(division: Event) -> tuple[Patch, ...]:
    """`x / count.clamp(min=1)`."""
    divisor = _divisor(division)
    code = syntax(division.file)
    if divisor is None or "torch" not in {v.partition(".")[0] for v in code.aliases.values()}:
        return ()
    change = Change(division.file, "divide by 1 where nothing was counted")
    return change.insert(divisor.end_lineno or 0, divisor.end_col_offset or 0, ".clamp(min=1)").patches()


def _divisor(division: Event) -> ast.expr | None:
    """What is divided by: a name, an attribute or a call, so that nothing needs parentheses."""
    node = division.node
    divisor: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        divisor = node.right
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        divisor = node.value
    return divisor if isinstance(divisor, (ast.Name, ast.Attribute, ast.Call)) else None
