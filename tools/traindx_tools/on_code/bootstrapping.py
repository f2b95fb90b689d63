"""Targets of temporal differences as they are written: r + gamma * value(next)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written

DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)
_CUT = ("detach", "stop_gradient", ".item(", ".data", ".numpy(", "no_grad")
_CUTS = frozenset({"detach", "stop_gradient", "detach_"})
_LOSS = re.compile(r"loss|criterion|mse|huber|smooth|squared|square|l2")
_FIXED = re.compile(r"target|tgt|frozen|teacher|old|ema|slow", re.IGNORECASE)
_REDUCES = frozenset({"max", "amax", "gather", "squeeze", "mean", "sum", "min", "take_along_axis", "unsqueeze", "view",
                      "reshape", "flatten", "argmax", "detach", "float", "minimum", "maximum", "stop_gradient", "to",
                      "where", "clamp", "clip", "range", "len", "zip", "arange", "softmax", "log_softmax", "exp", "cat",
                      "stack", "zeros_like", "ones_like", "zeros", "ones", "tensor", "long", "max_pool"})  # fmt: skip


_INDICES = frozenset({"argmax", "argmin", "argsort", "multinomial", "randint", "categorical", "bincount"})
_LIBRARIES = ("torch.", "jax.", "numpy.", "np.", "random.", "math.", "gym", "optax.")
"""What is called of these is no network of the program: draws, stacks, arithmetic."""


@dataclass(frozen=True)
class Target:
    """A target that stays in the graph."""

    name: str
    statement: ast.stmt
    called: str
    """The call of the trained network in it."""


def discounted(node: ast.AST) -> bool:
    """Whether an expression is a sum with a term that is multiplied by a discount."""
    products = [n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
    sums = [n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    return bool(sums) and any(
        isinstance(n, (ast.Name, ast.Attribute)) and DISCOUNT.fullmatch(last_name(n))
        for product in products
        for n in below(product)
    )


def rewarded(node: ast.AST) -> bool:
    """Whether a reward stands in an expression."""
    return any(REWARD.fullmatch(last_name(n)) for n in below(node))


def suspended(code: Syntax, node: ast.AST) -> bool:
    """Whether a statement stands under no_grad, by a `with` or a decorator."""
    for up in code.above(node):
        if isinstance(up, (ast.With, ast.AsyncWith)) and any(_off(i.context_expr) for i in up.items):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(_off(d) for d in up.decorator_list):
            return True
    return False


def _off(node: ast.AST) -> bool:
    text = written(node)
    return "no_grad" in text or "inference_mode" in text


def _parts(code: Syntax, value: ast.expr, depth: int = 3) -> Iterator[ast.expr]:
    """The expression and what its names were computed from in the same function, where gradients were recorded."""
    yield value
    for name in (n for n in below(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        bound = code.bindings(name)
        if depth and len(bound) == 1 and code.scope(bound[0][0]) is code.scope(name):
            if suspended(code, bound[0][0]):
                continue
            yield from _parts(code, bound[0][1], depth - 1)


def _in_loss(body: ast.AST, name: str) -> bool:
    """Whether it is given to a loss or compared with a prediction."""
    for node in below(body):
        if isinstance(node, ast.Call) and _LOSS.search(_called(node)):
            given: list[ast.expr] = list(node.args)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            given = [s for s in (node.left, node.right) if isinstance(s, ast.Name)]
        else:
            continue
        if any(name in names_in(g) for g in given):
            return True
    return False


def _called(node: ast.Call) -> str:
    """The name of what is called, in lower case; of the class in `nn.SmoothL1Loss()(a, b)`."""
    return last_name(node.func.func if isinstance(node.func, ast.Call) else node.func).lower()

