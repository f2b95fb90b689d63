"""Attention is normalised over the wrong axis.

Scores `q @ k^T` have queries on the last axis but one and keys on the last. The softmax runs over the keys, `dim=-1`.
Over the queries (`dim=-2`, or `dim=1` of three axes) each query's weights no longer sum to 1, and a causal mask does
not hold: every query's weight depends on all later ones. Slot attention normalises over its slots on purpose and is
left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C175",
    name="attention-softmax-axis",
    title="Attention is normalised over the wrong axis",
    severity=Severity.HIGH,
    sees="softmax of q @ k^T over an axis that is not the last, and its product with the values.",
    matters="Weights of a query do not sum to 1; with a causal mask the future leaks into the past.",
    alike=("slot attention, which normalises over the queries on purpose",),
    confirm=("print(weights.sum(-1)): it is not 1",),
)
_CHAIN = frozenset({"masked_fill", "masked_fill_", "float", "div", "mul", "clamp", "dropout", "to", "type_as"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every softmax of a product of queries and keys."""
    for file in project.files:
        if "softmax" not in file.text or "slot" in file.text.lower():
            continue
        code = syntax(file)
        for call in code.calls("softmax"):
            own = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
            scores = (
                call.func.value if own and isinstance(call.func, ast.Attribute) else argument(call, 0, "input", "x")
            )
            axis = argument(call, 0 if own else 1, "dim", "axis")
            value = code.number(axis)
            product = _product(code, scores) if scores is not None and axis is not None and value is not None else None
            if product is None or axis is None or value is None or not _times_values(code, call):
                continue
            if value in (0, -2, -3) or (value == 1 and _has_batch(product)):
                yield _finding(code, call, axis, product)


def _product(code: Syntax, node: ast.expr) -> ast.expr | None:
    """The product q @ k^T that scores come from, through scaling and masks."""
    for _ in range(8):
        node = code.origin(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Add)):
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return node if _turned(node.right) else None
        elif isinstance(node, ast.Call) and last_name(node.func) in ("matmul", "bmm"):
            return node if node.args and _turned(node.args[-1]) else None
        elif isinstance(node, ast.Call) and last_name(node.func) in _CHAIN and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    return None


def _turned(node: ast.expr) -> bool:
    text = written(node)
    return any(t in text for t in (".transpose(", ".T", ".mT", ".permute(", ".swapaxes(", "transpose("))


def _has_batch(product: ast.expr) -> bool:
    """Whether the product has at least three axes."""
    if isinstance(product, ast.Call):
        return last_name(product.func) == "bmm"
    return any(
        t in written(product) for t in ("transpose(1, 2)", "transpose(2, 1)", "transpose(2, 3)", "transpose(3, 2)")
    )


def _times_values(code: Syntax, call: ast.Call) -> bool:
    """Whether the weights are multiplied with something in the same function."""
    statement = code.statement(call)
    names = [t.id for t in statement.targets if isinstance(t, ast.Name)] if isinstance(statement, ast.Assign) else []
    up = code.parent(call)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.MatMult) and up.left is call:
        return True
    if isinstance(up, ast.Call) and last_name(up.func) in ("matmul", "bmm") and up.args and up.args[0] is call:
        return True
    for node in below(code.scope(call)):
        left: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left = node.left
        elif isinstance(node, ast.Call) and last_name(node.func) in ("matmul", "bmm") and node.args:
            left = (
                node.args[0]
                if len(node.args) > 1
                else node.func.value
                if isinstance(node.func, ast.Attribute)
                else None
            )
        if left is not None and any(isinstance(n, ast.Name) and n.id in names for n in below(left)):
            return True
    return False


def _finding(code: Syntax, call: ast.Call, axis: ast.expr, product: ast.expr) -> Finding:
    made = patching.replace_text(code.file, axis, "-1", "normalise over the keys")
    patch: tuple[Patch, ...] = (made,) if made is not None else ()
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} normalises the scores {code.file.segment(product)} over "
        f"axis {written(axis)}; the keys are on the last axis",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "axis", "axis": written(axis)},
        patch=patch,
    )
