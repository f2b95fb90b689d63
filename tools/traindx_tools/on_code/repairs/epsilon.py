"""Where an epsilon is written down, and the patch that raises it to what the dtype resolves."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code import patching
from traindx_tools.on_code.source import SourceFile, below

SAFE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6}
"""An epsilon that 1 - eps and log resolve, with room: a few spacings below 1 (2**-11, 2**-8, 2**-24)."""


def raised(file: SourceFile, node: ast.AST, dtype: str) -> tuple[Patch, ...]:
    """Patch of the one number that both limits of a clamp are made of; empty where it is not certain which that is.

    `node`: the call. The epsilon is a name bound once at module level to a positive number, or that number itself on
    the call's line.
    """
    safe = SAFE.get(dtype)
    if safe is None:
        return ()
    names = {n.id for n in below(node) if isinstance(n, ast.Name)}
    bound = [
        s
        for s in file.tree.body
        if isinstance(s, ast.Assign)
        and len(s.targets) == 1
        and isinstance(s.targets[0], ast.Name)
        and s.targets[0].id in names
        and _small(s.value, safe)
    ]
    places = [s.value for s in bound if _bound_once(file, s.targets[0])]
    inline = [n for n in below(node) if _small(n, safe)]
    if len(places) + (1 if inline else 0) != 1:
        return ()
    changes = [
        patching.replace_text(file, n, f"{safe:g}".replace("e-0", "e-"), f"an epsilon that {dtype} resolves")
        for n in (places or inline[:1])
    ]
    return tuple(c for c in changes if c is not None) if len(places or inline) == 1 else ()


def named(node: ast.AST) -> str:
    """The name of the epsilon in a limit written as `1 - EPS`; "" where it is a number."""
    for inner in below(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and isinstance(inner.left, ast.Constant):
            return ast.unparse(inner.right) if isinstance(inner.right, (ast.Name, ast.Attribute)) else ""
    return ""


def _small(node: ast.AST, safe: float) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < safe


def _bound_once(file: SourceFile, target: ast.expr) -> bool:
    name = target.id if isinstance(target, ast.Name) else ""
    stores = [
        n
        for n in below(file.tree)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, (ast.Store, ast.Del))
    ]
    return len(stores) == 1
