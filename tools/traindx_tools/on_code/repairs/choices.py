"""A choice by a traced value made with where (C511)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.syntax import Syntax, last_name

_TREES = ("map", "tree_map", "tree_multimap")
_ARRAYS = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Subscript)


def with_where(code: Syntax, node: ast.AST) -> tuple[Patch, ...]:
    """`x = jnp.where(test, new, x)` for `if test: x = new`, the same over the leaves of a tree; also `a if t else b`.

    Only for one comparison, whose `and` and `or` would need other operators, and for one assignment.
    """
    jnp = next((k for k, v in code.aliases.items() if v == "jax.numpy"), None)
    test = getattr(node, "test", None)
    if jnp is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ()
    condition = source_of(code.file, test)
    change = Change(code.file, "choose with where")
    if isinstance(node, ast.IfExp):
        if not _array(code, node.body) or not _array(code, node.orelse):
            return ()
        chosen = f"{source_of(code.file, node.body)}, {source_of(code.file, node.orelse)}"
        return change.replace(node, f"{jnp}.where({condition}, {chosen})").patches()
    if not isinstance(node, ast.If) or len(node.body) != 1 or node.orelse:
        return ()
    (set_anew,) = node.body
    name = set_anew.targets[0] if isinstance(set_anew, ast.Assign) and len(set_anew.targets) == 1 else None
    if not isinstance(name, ast.Name) or not isinstance(set_anew, ast.Assign) or node.lineno == set_anew.lineno:
        return ()
    new = source_of(code.file, set_anew.value)
    if "\n" in new or "\n" in condition or not code.bindings(name) or code.loops(node):
        return ()
    value = set_anew.value
    mapped = isinstance(value, ast.Call) and last_name(value.func) in _TREES
    if isinstance(value, ast.Call) and mapped and code.qualified(value.func).startswith("jax."):
        leaf = f"lambda new, old: {jnp}.where({condition}, new, old)"
        line = f"{name.id} = {source_of(code.file, value.func)}({leaf}, {new}, {name.id})"
    elif _array(code, value):
        line = f"{name.id} = {jnp}.where({condition}, {new}, {name.id})"
    else:
        return ()
    return change.before(node, line).delete(node).patches()


def _array(code: Syntax, node: ast.expr) -> bool:
    """Whether an expression is certainly of one array: arithmetic, or a function of jax.numpy."""
    if isinstance(node, ast.Call):
        return code.qualified(node.func).startswith("jax.numpy.")
    return isinstance(node, _ARRAYS)
