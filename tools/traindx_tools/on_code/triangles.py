"""Triangular masks as they are written: which positions are true, and what that means where the mask is used."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from traindx_tools.on_code.syntax import Syntax, argument, last_name, written


@dataclass(frozen=True)
class Triangle:
    """Positions (query, key) that are true: key - query <= `offset` where `lower`, else key - query >= `offset`."""

    lower: bool
    offset: int
    boolean: bool
    """Whether it was made a mask of booleans (or was compared), not left as numbers."""
    infinite: bool = False
    """Whether its positions hold -inf (or a large negative number): a mask that is added."""

    def complement(self) -> Triangle:
        """The positions that are false here."""
        return Triangle(not self.lower, self.offset + (1 if self.lower else -1), True)

    def __str__(self) -> str:
        return ("lower" if self.lower else "upper") + f" triangle (diagonal {self.offset})"


_THROUGH = frozenset({"bool", "to", "view", "unsqueeze", "expand", "float", "cuda", "type", "astype", "reshape", "int",
                      "contiguous", "clone", "detach", "byte", "type_as", "logical_not"})  # fmt: skip
_MADE = {"tril": True, "triu": False}


def triangle(code: Syntax, node: ast.expr | None, depth: int = 10) -> Triangle | None:
    """The triangle that a mask is; None where it is something else or not certain."""
    if node is None or depth <= 0:
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        origin = None if _changed_in_place(code, node) else code.assigned(node)
        return triangle(code, origin, depth - 1) if origin is not None and origin is not node else None
    if isinstance(node, ast.Subscript):
        return triangle(code, node.value, depth - 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        inner = triangle(code, node.operand, depth - 1)
        return inner.complement() if inner is not None else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(code, node, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and written(node.left) in ("1", "1.0"):
        inner = triangle(code, node.right, depth - 1)
        return None if inner is None else inner.complement()
    if isinstance(node, ast.Call):
        return _called(code, node, depth)
    return None


def _changed_in_place(code: Syntax, name: ast.expr) -> bool:
    """`mask.masked_fill_(mask.bool(), -inf)`: what the mask holds is no longer what it was made of."""
    text, scope = written(name), code.scope(name)
    return any(isinstance(c.func, ast.Attribute) and written(c.func.value) == text and code.scope(c) is scope
               for c in code.calls("masked_fill_", "fill_", "mul_", "neg_", "logical_not_", "add_"))  # fmt: skip


def _compared(code: Syntax, node: ast.Compare, depth: int) -> Triangle | None:
    inner = triangle(code, node.left, depth - 1)
    value = node.comparators[0].value if isinstance(node.comparators[0], ast.Constant) else None
    if inner is None or value not in (0, 1, True, False):
        return None
    positive = bool(value) == isinstance(node.ops[0], ast.Eq)
    if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    return Triangle(inner.lower, inner.offset, True) if positive else inner.complement()


def _called(code: Syntax, node: ast.Call, depth: int) -> Triangle | None:
    name = last_name(node.func)
    if name in _MADE:
        own = isinstance(node.func, ast.Attribute) and not code.qualified(node.func)
        diagonal = argument(node, 0 if own else 1, "diagonal", "k")
        offset = 0.0 if diagonal is None else code.number(diagonal)
        content = (
            node.func.value if own and isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
        )
        if offset is None or content is None:
            return None
        text = written(content) + " " + written(code.origin(content))
        infinite = "inf" in text.lower() or "finfo" in text or "-1e" in text
        return Triangle(_MADE[name], int(offset), "bool" in text, infinite)
    if name in _THROUGH and isinstance(node.func, ast.Attribute):
        inner = triangle(code, node.func.value, depth - 1)
        if inner is None:
            return None
        if name == "logical_not":
            return inner.complement()
        boolean = inner.boolean or name in ("bool", "byte") or "bool" in written(node)
        return Triangle(inner.lower, inner.offset, boolean, inner.infinite)
    if name == "logical_not" and node.args:
        inner = triangle(code, node.args[0], depth - 1)
        return inner.complement() if inner is not None else None
    return None
