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


def statistics_put_back(file: SourceFile, apply: ast.AST, name: str) -> tuple[Patch, ...]:
    """`batch_stats=mutated["batch_stats"]` for the one apply_gradients of what the mutable apply returned."""
    code = syntax(file)
    statement = code.statement(apply)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    mutated = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    calls = code.calls("apply_gradients")
    if not isinstance(mutated, ast.Name) or len(calls) != 1 or calls[0].args:
        return ()
    scope = code.scope(calls[0])
    bound = [n for n in code.of(ast.Name) if n.id == mutated.id and isinstance(n.ctx, ast.Store)
             and code.scope(n) is scope and n.lineno < calls[0].lineno]  # fmt: skip
    fields = [n for n in code.of(ast.Attribute) if n.attr == name and isinstance(n.ctx, ast.Load)]
    if len(bound) != 1 or not fields:
        return ()
    change = Change(file, f"carry the new {name} on")
    return change.pass_argument(calls[0], name, f'{mutated.id}["{name}"]').patches()
