"""What is kept with its graph, as it is written (C103)."""

from __future__ import annotations

import ast

from traindx_tools.on_code.binding import mixed_in
from traindx_tools.on_code.syntax import parameters
from traindx_tools.on_code.trace import Event


def kept_expression(event: Event) -> ast.expr | None:
    """What is kept, as it is written: an argument, what is added, what is mixed in. A caller may pass in numbers."""
    node = event.node
    if isinstance(node, ast.Call):
        return node.args[-1] if node.args else None
    if isinstance(node, ast.AugAssign):
        return node.value
    if not isinstance(node, ast.Assign):
        return None
    if event.kind == "blended":
        mixed = mixed_in(node)
        given = parameters(event.function.node) if event.function is not None else []
        return mixed[-1] if mixed and not (isinstance(mixed[-1], ast.Name) and mixed[-1].id in given) else None
    if not isinstance(node.value, ast.BinOp):
        return None
    own = ast.unparse(node.value.left) == ast.unparse(node.targets[0])
    return node.value.right if own else node.value.left
