"""Targets of temporal differences as they are written: r + gamma * value(next)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)


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
