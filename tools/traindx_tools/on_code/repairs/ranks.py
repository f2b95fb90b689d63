"""Ranks that start from different weights (C116)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import argument, syntax, written


def one_seed_for_the_model(file: SourceFile, seed: ast.AST, model: Sequence[ast.AST]) -> tuple[Patch, ...]:
    """The same seed on every rank while the model is built, the rank's own one behind it.

    `model`: the calls through which it is built, of which one stands beside the seed.
    """
    code = syntax(file)
    statement = code.statement(seed)
    value = argument(seed, 0, "seed") if isinstance(seed, ast.Call) else None
    if not isinstance(seed, ast.Call) or not isinstance(statement, ast.Expr) or not isinstance(value, ast.BinOp):
        return ()
    if not isinstance(value.op, ast.Add):
        return ()
    sides = [(value.left, value.right), (value.right, value.left)]
    common = [a for a, b in sides if _is_rank(b) and not _is_rank(a)]
    change = Change(file, "build the model from one seed on every rank")
    block = change.block(statement)
    built = next((s for m in model if (s := code.statement(m)) in block), None)
    if len(common) != 1 or built is None:
        return ()
    change.unwrap(value, common[0])
    return change.after(built, source_of(file, statement)).patches()


def _is_rank(node: ast.AST) -> bool:
    return "rank" in written(node).lower()
