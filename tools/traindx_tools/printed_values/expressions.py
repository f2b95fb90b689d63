"""What the form of an expression tells by itself: its name, its addends, what only scales it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.nodes import last_name


def key_of(node: ast.expr) -> str | None:
    """The text under which a variable is remembered: a name or a dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := key_of(node.value)) is not None:
        return f"{owner}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and (owner := key_of(node.value)):
        return f"{owner}[{node.slice.value!r}]"
    return None


def trains(node: ast.AST) -> bool:
    """Whether something is called in it that only a step of training calls."""
    names = {last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return bool(
        names
        & {
            "backward",
            "manual_backward",
            "step",
            "update",
            "train_step",
            "training_step",
            "apply_gradients",
            "train_on_batch",
            "train_batch",
            "apply_updates",
        }
    )


def function_name(node: ast.AST) -> str:
    """The name that a function is defined under, "" where the node defines none."""
    return node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""


def constant(node: ast.AST | None) -> object:
    """The value of a literal, None of anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def unscaled(node: ast.expr) -> ast.expr:
    """Without what only scales a value: `scaler.scale(x)`, `x / k`, `x * c`, `x.mean()`."""
    while True:
        if isinstance(node, ast.Call) and last_name(node.func) in ("scale", "scale_loss") and node.args:
            node = node.args[0]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("mean", "sum", "float")
            and not node.args
        ):
            node = node.func.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            node = (
                node.right
                if isinstance(node.left, (ast.Constant, ast.Attribute))
                or (key_of(node.left) is not None and not isinstance(node.right, (ast.Name, ast.Constant)))
                else (node.left if isinstance(node.right, ast.Constant) else node.right)
            )
        else:
            return node


def addends_of(node: ast.expr) -> Iterator[ast.expr]:
    """What a sum or difference is made of; anything else is its only addend."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from addends_of(node.left)
        yield from addends_of(node.right)
    else:
        yield node


def compares_answers(node: ast.expr) -> bool:
    """Whether the best class is compared with the label: `(logits.argmax(1) == y)`."""
    compared = [n for n in ast.walk(node) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq)]
    return any(re.search(r"argmax|\.max\(|pred|topk|> ?0", ast.unparse(c)) for c in compared)
