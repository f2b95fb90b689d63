"""The log-probabilities of the policy that acted, worked out once in front of the epochs (C258)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in


def stored_before(code: Syntax, old: ast.expr, epochs: ast.AST) -> tuple[Patch, ...]:
    """`stored = pi(O).log_prob(A)` in front of the loop over epochs, and `stored[mb]` in place of it inside.

    `old`: the call under no_grad by which the policy of this very step is asked, of the rows `mb` of each array.
    """
    function = code.scope(old)
    library = next((k for k, v in code.aliases.items() if v == "torch"), None)
    statement = code.statement(old)
    if not isinstance(epochs, ast.For) or library is None or not isinstance(statement, ast.Assign):
        return ()
    rows = {n.id for loop in code.loops(old) if isinstance(loop, ast.For) and loop is not epochs
            and epochs in code.above(loop) for n in below(loop.target) if isinstance(n, ast.Name)}  # fmt: skip
    parts = [n for n in below(old) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Name)
             and n.slice.id in rows and isinstance(n.value, ast.Name)]  # fmt: skip
    used = {n.slice.id for n in parts if isinstance(n.slice, ast.Name)}
    inside = {n.id for s in below(epochs) for n in (s,) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if len(used) != 1 or (names_in(old) - used) & inside or old.lineno != old.end_lineno:
        return ()
    name = "log_probs_then"
    if name in names_in(function):
        return ()
    text, start = source_of(code.file, old), old.col_offset
    for part in sorted(parts, key=lambda n: n.col_offset, reverse=True):
        first, last = (part.value.end_col_offset or 0) - start, (part.end_col_offset or 0) - start
        raw = text.encode()
        text = (raw[:first] + raw[last:]).decode()
    change = Change(code.file, "ask the policy that acted, once, in front of the epochs")
    change.before(epochs, f"with {library}.no_grad():\n    {name} = {text}")
    return change.replace(old, f"{name}[{used.pop()}]").patches()


def asked_aside(code: Syntax, old: ast.expr) -> ast.expr | None:
    """The call that old log-probabilities come from, where it is one of a distribution's own."""
    made = code.origin(old)
    if isinstance(made, ast.Call) and last_name(made.func) == "detach" and isinstance(made.func, ast.Attribute):
        made = code.origin(made.func.value)
    return made if isinstance(made, ast.Call) and last_name(made.func) == "log_prob" else None
