"""Triangular masks as they are written: which positions are true, and what that means where the mask is used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.values import whole

Further = Callable[[Syntax, ast.expr], list[tuple[Syntax, ast.expr]]]
"""What a name may stand for that its own function does not tell, and what a function of the project returns."""


@dataclass(frozen=True)
class Triangle:
    """Positions (query, key) that are true: key - query <= `offset` where `lower`, else key - query >= `offset`."""

    lower: bool
    offset: int
    boolean: bool
    """Whether it was made a mask of booleans (or was compared), not left as numbers."""
    infinite: bool = False
    """Whether its positions hold -inf (or a large negative number): a mask that is added."""
    made: tuple[SourceFile, ast.Call] | None = field(default=None, compare=False)
    """The call of tril or triu."""

    def complement(self) -> Triangle:
        """The positions that are false here."""
        return Triangle(not self.lower, self.offset + (1 if self.lower else -1), True, made=self.made)

    def __str__(self) -> str:
        return ("lower" if self.lower else "upper") + f" triangle (diagonal {self.offset})"


_THROUGH = frozenset({"bool", "to", "view", "unsqueeze", "expand", "float", "cuda", "type", "astype", "reshape", "int",
                      "contiguous", "clone", "detach", "byte", "type_as", "logical_not"})  # fmt: skip
_MADE = {"tril": True, "triu": False}


def triangle(code: Syntax, node: ast.expr | None, depth: int = 10, further: Further | None = None) -> Triangle | None:
    """The triangle that a mask is; None where it is something else or not certain."""
    if node is None or depth <= 0:
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        origin = None if _changed_in_place(code, node) else code.assigned(node)
        if origin is not None and origin is not node:
            return triangle(code, origin, depth - 1, further)
        return None if code.bindings(node) else _from_elsewhere(code, node, depth, further)
    if isinstance(node, ast.Subscript):
        return triangle(code, node.value, depth - 1, further)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        inner = triangle(code, node.operand, depth - 1, further)
        return inner.complement() if inner is not None else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(code, node, depth, further) or _of_positions(code, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and written(node.left) in ("1", "1.0"):
        inner = triangle(code, node.right, depth - 1, further)
        return None if inner is None else replace(inner.complement(), boolean=inner.boolean)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _weighted(code, node, depth, further)
    if isinstance(node, ast.Call):
        return _called(code, node, depth, further)
    return None


def is_low(code: Syntax, node: ast.expr | None) -> bool:
    """Whether a value is -inf or a large negative number."""
    if node is None:
        return False
    text = written(code.origin(node))
    number = code.number(node)
    return (number is not None and number <= -1e3) or "-inf" in text or "finfo" in text or text.startswith("-")


def _from_elsewhere(code: Syntax, node: ast.expr, depth: int, further: Further | None) -> Triangle | None:
    """One triangle, where everything that may be meant is this one."""
    found = [] if further is None else [triangle(c, n, depth - 2, further) for c, n in further(code, node)]
    return found[0] if found and all(t == found[0] for t in found) else None


def _weighted(code: Syntax, node: ast.BinOp, depth: int, further: Further | None) -> Triangle | None:
    """`(1 - seen) * -1e9`: a mask that is added."""
    for mask, value in ((node.left, node.right), (node.right, node.left)):
        number = code.number(value)
        if (number is not None and number <= -1e3) or "finfo" in written(value):
            inner = triangle(code, mask, depth - 1, further)
            return None if inner is None else replace(inner, infinite=True)
    return None


def _of_positions(code: Syntax, node: ast.Compare) -> Triangle | None:
    """Positions compared with each other: `p[None, :] > p[:, None]` of `p = torch.arange(t)`."""
    left, right = _positions(code, node.left), _positions(code, node.comparators[0])
    if left is None or right is None or {left, right} != {"key", "query"}:
        return None
    op: ast.cmpop = node.ops[0]
    ordered = {ast.Gt: (False, 1), ast.GtE: (False, 0), ast.Lt: (True, -1), ast.LtE: (True, 0)}.get(type(op))
    if ordered is None:
        return None
    lower, offset = ordered
    if left == "query":  # query > key: key - query <= -1
        lower, offset = not lower, -offset
    return Triangle(lower, offset, True)


def _positions(code: Syntax, node: ast.expr) -> str | None:
    """Along which axis of (query, key) a range lies; None where it is no range with one new axis."""
    node = code.origin(node)
    base: ast.expr | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        base, (first, second) = node.value, (written(e) for e in node.slice.elts)
        axis = "key" if (first, second) == ("None", ":") else "query" if (first, second) == (":", "None") else None
    elif isinstance(node, ast.Subscript) and written(node.slice) == "None":
        base, axis = node.value, "key"
    elif isinstance(node, ast.Call) and last_name(node.func) == "unsqueeze" and isinstance(node.func, ast.Attribute):
        base = node.func.value
        place = code.number(argument(node, 0, "dim"))
        axis = None if place is None else {0.0: "key", 1.0: "query", -1.0: "query", -2.0: "key"}.get(place)
    elif isinstance(node, ast.Call) and last_name(node.func) in ("view", "reshape") and len(node.args) == 2:
        sizes = [written(a) for a in node.args]
        base = getattr(node.func, "value", None)
        axis = {("1", "-1"): "key", ("-1", "1"): "query"}.get((sizes[0], sizes[1]))
    else:
        return None
    made = code.origin(base) if isinstance(base, ast.expr) else None
    whole = isinstance(made, ast.Call) and last_name(made.func) == "arange" and len(made.args) == 1
    return axis if whole else None


def _changed_in_place(code: Syntax, name: ast.expr) -> bool:
    """`mask.masked_fill_(mask.bool(), -inf)`: what the mask holds is no longer what it was made of."""
    text, scope = written(name), code.scope(name)
    return any(isinstance(c.func, ast.Attribute) and written(c.func.value) == text and code.scope(c) is scope
               for c in code.calls("masked_fill_", "fill_", "mul_", "neg_", "logical_not_", "add_"))  # fmt: skip


def _compared(code: Syntax, node: ast.Compare, depth: int, further: Further | None) -> Triangle | None:
    value = node.comparators[0].value if isinstance(node.comparators[0], ast.Constant) else None
    if value not in (0, 1, True, False) or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    inner = triangle(code, node.left, depth - 1, further)
    if inner is None or inner.infinite:
        return None
    positive = bool(value) == isinstance(node.ops[0], ast.Eq)
    return replace(inner, boolean=True) if positive else inner.complement()


def _called(code: Syntax, node: ast.Call, depth: int, further: Further | None) -> Triangle | None:
    name = last_name(node.func)
    if name in _MADE:
        own = isinstance(node.func, ast.Attribute) and not code.qualified(node.func)
        diagonal = argument(node, 0 if own else 1, "diagonal", "k")
        offset = 0 if diagonal is None else whole(code.number(diagonal))
        content = (
            node.func.value if own and isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
        )
        if offset is None or content is None:
            return None
        text = written(content) + " " + written(code.origin(content))
        infinite = "inf" in text.lower() or "finfo" in text or "-1e" in text
        return Triangle(_MADE[name], offset, "bool" in text or "uint8" in text, infinite, (code.file, node))
    if name in _THROUGH and isinstance(node.func, ast.Attribute):
        inner = triangle(code, node.func.value, depth - 1, further)
        if inner is None:
            return None
        if name == "logical_not":
            return inner.complement()
        boolean = inner.boolean or name in ("bool", "byte") or "bool" in written(node)
        return replace(inner, boolean=boolean)
    if name == "logical_not" and node.args:
        inner = triangle(code, node.args[0], depth - 1, further)
        return inner.complement() if inner is not None else None
    if name == "masked_fill" and isinstance(node.func, ast.Attribute) and not code.qualified(node.func):
        low = is_low(code, argument(node, 1, "value"))
        inner = triangle(code, argument(node, 0, "mask") if low else node.func.value, depth - 1, further)
        return replace(inner, infinite=True) if inner is not None and low else inner
    return _from_elsewhere(code, node, depth, further)
