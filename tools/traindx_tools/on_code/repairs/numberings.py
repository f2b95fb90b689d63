"""Numberings that fit all who read them: handed in for held-out rows (C286), with room for a blank (C273)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import Syntax, argument, parameters, written


def blank_behind(look: Lookup, code: Syntax, call: ast.Call, table: str, width: ast.expr | None) -> tuple[Patch, ...]:
    """`CTCLoss(blank=N - 1)` for a last layer of N outputs, and the same number where texts are decoded.

    Only where decoding is a function of the project with a parameter `blank` that nobody passes.
    """
    decoders = [(c, f) for fs in look.functions.values() for c, f in fs
                if isinstance(d := parameters(f).get("blank"), ast.Constant) and d.value == 0]  # fmt: skip
    if len(decoders) != 1 or not isinstance(width, (ast.Name, ast.Attribute, ast.BinOp)):
        return ()
    other, function = decoders[0]
    top = [s for s in other.file.tree.body if isinstance(s, ast.Assign) and written(s.targets[0]) == table]
    passed = [k for _, k in look.callers(function, other)
              if argument(k, list(parameters(function)).index("blank"), "blank") is not None]  # fmt: skip
    if passed or len(top) != 1 or top[0].lineno > function.lineno:
        return ()
    behind = f"{source_of(code.file, width)} - 1"
    if isinstance(width, ast.BinOp):
        one = isinstance(width.op, ast.Add) and isinstance(width.right, ast.Constant) and width.right.value == 1
        behind = source_of(code.file, width.left) if one else ""
    if not behind or (isinstance(width, ast.Attribute) and written(width).startswith("self.")):
        return ()
    summary = "give the blank the number behind the table"
    here = Change(code.file, summary).pass_argument(call, "blank", behind)
    there = here if other is code else Change(other.file, summary)
    there.replace(parameters(function)["blank"], f"len({table})")
    made = here.patches()
    more = () if other is code else there.patches()
    return (*made, *more) if made and (other is code or more) else ()


def last_width(look: Lookup, code: Syntax, size: int | None) -> ast.expr | None:
    """The number of outputs, one more than a table has entries, of the one such layer in a source."""
    found = [w for layer in code.calls("Linear", "LazyLinear", "Conv1d")
             if (w := argument(layer, 1, "out_features", "out_channels")) is not None
             and size is not None and look.number(code, w) == size + 1]  # fmt: skip
    return found[0] if len(found) == 1 else None
