"""Updates and statistics of flax and optax that go where they belong (C507, C530)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import last_name, syntax


def rest_set_to_zero(file: SourceFile, masked: ast.Call, mask: ast.expr) -> tuple[Patch, ...]:
    """A second mask in a chain that sets the updates of what is frozen to zero; for a mask that is a tree of bools."""
    code = syntax(file)
    made = code.origin(mask)
    of_tree = isinstance(made, ast.Call) and last_name(made.func) in ("map", "tree_map", "map_with_path",
                                                                      "tree_map_with_path", "path_aware_map")
    jax = next((k for k, v in code.aliases.items() if v == "jax"), None)
    if jax is None or not isinstance(mask, ast.Name) or not (of_tree or isinstance(made, ast.Dict)):
        return ()
    if not isinstance(masked.func, ast.Attribute):
        return ()
    optax = source_of(file, masked.func.value)
    rest = f"{jax}.tree_util.tree_map(lambda t: not t, {mask.id})"
    change = Change(file, "set the updates of what is frozen to zero")
    return change.wrap(
        masked, f"{optax}.chain(", f", {optax}.masked({optax}.set_to_zero(), {rest}))").patches()  # fmt: skip
