"""Names of discounts and rewards, and where gradients are not recorded, as it is written."""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.syntax import Syntax, written

DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)


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
