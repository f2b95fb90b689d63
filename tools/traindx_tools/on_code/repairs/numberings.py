"""Numberings that fit all who read them: handed in for held-out rows (C286), with room for a blank (C273)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, parameters, written


def handed_in(look: Lookup, code: Syntax, body: ast.AST, node: ast.expr, held: Syntax, call: ast.AST
              ) -> tuple[Patch, ...]:  # fmt: skip
    """`prepare(val_rows, names=names)`, where the function returns the names that it has numbered.

    `node`: the numbering inside the function, `call`: the call that gives it the held-out rows.
    """
    if not isinstance(body, ast.FunctionDef) or not isinstance(call, ast.Call):
        return ()
    returns = [r.value for r in code.of(ast.Return) if code.function(r) is body]
    given = returns[0].elts if len(returns) == 1 and isinstance(returns[0], ast.Tuple) else []
    made = _bound_to_name(code, body, node)
    places = [i for i, v in enumerate(given) if isinstance(v, ast.Name) and v.id in made]
    calls = look.callers(body, code)
    others = [(c, k) for c, k in calls if k is not call]
    if len(places) != 1 or len(others) != 1 or others[0][0] is not held or body.args.kwarg or body.args.kwonlyargs:
        return ()
    name = written(given[places[0]])
    first, statement = held.statement(others[0][1]), made[name]
    target = first.targets[0] if isinstance(first, ast.Assign) and first.value is others[0][1] else None
    kept = target.elts[places[0]] if isinstance(target, ast.Tuple) and len(target.elts) == len(given) else None
    together = held.scope(call) is held.scope(others[0][1]) and first is not None and first.lineno < call.lineno
    if not isinstance(kept, ast.Name) or kept.id == "_" or not together or name in parameters(body):
        return ()
    if not body.args.args or body.args.vararg:
        return ()
    last: ast.arg | ast.expr = body.args.defaults[-1] if body.args.defaults else body.args.args[-1]
    inside = Change(code.file, f"number the held-out rows as the training rows: hand {name} in")
    outside = inside if held is code else Change(held.file, inside.summary)
    inside.insert(last.end_lineno or 0, last.end_col_offset or 0, f", {name}=None")
    value = statement.value
    inside.insert(value.end_lineno or 0, value.end_col_offset or 0, f" if {name} is None else {name}")
    outside.pass_argument(call, name, kept.id)
    made_inside = inside.patches()
    made_outside = () if held is code else outside.patches()
    return (*made_inside, *made_outside) if made_inside and (held is code or made_outside) else ()


def _bound_to_name(code: Syntax, body: ast.FunctionDef, node: ast.expr) -> dict[str, ast.Assign]:
    """The names, bound once in the function, that the numbering is, or that it numbers."""
    wanted = [node, *(n for n in below(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))]
    found: dict[str, ast.Assign] = {}
    for statement in (s for s in body.body if isinstance(s, ast.Assign) and len(s.targets) == 1):
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or len(code.bindings(target)) != 1:
            continue
        if statement.value is node or any(isinstance(w, ast.Name) and w.id == target.id for w in wanted):
            found[target.id] = statement
    return found


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
