"""Two random transforms that draw the same numbers (C195)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.syntax import Syntax, names_in


def drawn_alike(code: Syntax, image: ast.Call, label: ast.Call) -> tuple[Patch, ...]:
    """torch's generator set back between the two calls, for transforms that all draw from it (torchvision's).

    Both stand in statements of their own, one after the other in one block.
    """
    torch = next((k for k, v in code.aliases.items() if v == "torch"), None)
    first, second = code.statement(image), code.statement(label)
    if torch is None:
        return ()
    change = Change(code.file, "draw the same random parameters for both")
    block = change.block(first) if first is not None else []
    one_pair = first is not None and second is not None and first is not second and any(s is second for s in block)
    name = next(n for n in ("state", "rng_state", "random_state") if n not in names_in(code.scope(image)))
    if not one_pair or _draws_itself(code, first) or _draws_itself(code, second):
        return ()
    return (
        change.before(first, f"{name} = {torch}.get_rng_state()")
        .before(second, f"{torch}.set_rng_state({name})")
        .patches()
    )


def _draws_itself(code: Syntax, statement: ast.stmt | None) -> bool:
    """Whether a statement is more than an assignment of the one call."""
    return not isinstance(statement, (ast.Assign, ast.AnnAssign))
