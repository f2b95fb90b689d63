"""The terms of a vector quantizer as they are written: which side of each distance is cut from the graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

_CUTS = frozenset({"detach", "stop_gradient", "sg", "stop_grad"})
_DISTANCES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "squared_error", "l2_loss"})
_QUANTIZED = re.compile(r"z_?q\w*|q|quant\w*|zq|e_?k|codes?|hard|vq|q_?latents?|embedded|selected", re.IGNORECASE)
_LOOKUP = re.compile(r"argmin|one_hot|codebook|embedding|embed|\.weight\[|index_select|take\(|dictionary|codes\[", re.I)

_TABLE = re.compile(
    r"argmin|one_hot|(codebook|codes|embedding|embed|dictionary|centers|centroids)\w*[\[(]|\.weight\[|index_select|take",
    re.I,
)
"""What is written where codes are taken from a table."""


@dataclass(frozen=True)
class Term:
    """A distance between an encoder's output z and its quantized value q."""

    node: ast.expr
    z: ast.expr
    q: ast.expr
    z_cut: bool
    q_cut: bool


def terms(code: Syntax, scope: ast.AST) -> list[Term]:
    """Every distance in a function of which at least one side is cut, and one side is a quantized value."""
    found: list[Term] = []
    for node in below(scope):
        pair = _sides(node)
        if pair is None or not isinstance(node, ast.expr):
            continue
        (left, left_cut), (right, right_cut) = (_uncut(s) for s in pair)
        if not (left_cut or right_cut) or written(left) == written(right):
            continue
        quantized = [_is_quantized(code, s) for s in (left, right)]
        if quantized == [True, False]:
            found.append(Term(node, right, left, right_cut, left_cut))
        elif quantized == [False, True]:
            found.append(Term(node, left, right, left_cut, right_cut))
    return found


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of a distance: mse_loss(a, b), (a - b) ** 2, (a - b).pow(2), square(a - b)."""
    if isinstance(node, ast.Call):
        if last_name(node.func) in _DISTANCES and len(node.args) >= 2:
            return node.args[0], node.args[1]
        inner: ast.expr | None = None
        if last_name(node.func) in ("pow", "square", "abs"):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            inner = owner if isinstance(owner, ast.BinOp) else node.args[0] if node.args else None
        return (inner.left, inner.right) if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.left, ast.BinOp):
        return (node.left.left, node.left.right) if isinstance(node.left.op, ast.Sub) else None
    return None


def _uncut(node: ast.expr) -> tuple[ast.expr, bool]:
    """The tensor behind a cut, and whether there was one."""
    if isinstance(node, ast.Call) and last_name(node.func) in _CUTS:
        if node.args:
            return node.args[0], True
        return (node.func.value, True) if isinstance(node.func, ast.Attribute) else (node, True)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value, True
    return node, False


def _is_quantized(code: Syntax, node: ast.expr) -> bool:
    """Whether a value is what a codebook gave: by where it comes from, else by its name."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return _LOOKUP.search(written(node)) is not None
    made = code.bindings(node)
    text = " ".join(written(v) for _, v in made)
    if _LOOKUP.search(text):
        return True
    return _QUANTIZED.fullmatch(last_name(node)) is not None


def looked_up_from(code: Syntax, node: ast.expr) -> bool:
    """Whether a quantized value certainly comes out of a table of codes, and not from rounding or a sign."""
    text = " ".join(written(v) for _, v in code.bindings(node)) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return _TABLE.search(text or written(node)) is not None


def looked_up(code: Syntax, scope: ast.AST) -> Iterator[ast.Name]:
    """Names of quantized values that a function takes from a codebook by the nearest code."""
    if not any(isinstance(n, (ast.Call, ast.Attribute)) and last_name(getattr(n, "func", n)) == "argmin"
               for n in below(scope)):  # fmt: skip
        return
    for node in below(scope):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and _QUANTIZED.fullmatch(target.id):
            if not _LOOKUP.search(written(node.value)):
                continue
            yield target
