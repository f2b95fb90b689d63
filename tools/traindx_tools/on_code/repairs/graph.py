"""What stays in the autograd graph and what is cut out of it (C103, C139, C145, C150)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.binding import mixed_in
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, parameters, syntax
from traindx_tools.on_code.trace import Event

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def cut(file: SourceFile, value: ast.expr, library: str = "torch") -> tuple[Patch, ...]:
    """A value detached where it is made."""
    change = Change(file, "keep the target out of the graph")
    if library == "jax":
        name = _stop_gradient(syntax(file))
        return change.wrap(value, f"{name}(", ")").patches() if name else ()
    before, after = ("", ".detach()") if isinstance(value, _ATOMS) else ("(", ").detach()")
    return change.wrap(value, before, after).patches()


def _stop_gradient(code: Syntax) -> str:
    """jax.lax.stop_gradient as this file can write it."""
    names = {v: k for k, v in code.aliases.items()}
    if "jax.lax.stop_gradient" in names:
        return names["jax.lax.stop_gradient"]
    if "jax.lax" in names:
        return f"{names['jax.lax']}.stop_gradient"
    return f"{names['jax']}.lax.stop_gradient" if "jax" in names else ""




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


def all_cut(file: SourceFile, values: Sequence[ast.expr]) -> tuple[Patch, ...]:
    """Several values of one statement detached where they are used."""
    change = Change(file, "keep the targets out of the graph")
    for value in values:
        change.wrap(value, "", ".detach()") if isinstance(value, _ATOMS) else change.spoil()
    return change.patches()
