"""A term of the loss that leaves the ignored label out, as the cross entropy beside it does (C260)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written


def without_ignored(code: Syntax, call: ast.Call, ignored: str) -> tuple[Patch, ...]:
    """Predictions and one-hot targets set to 0 where the label is the ignored one.

    For `target = torch.zeros_like(probs).scatter_(1, mask.unsqueeze(1), 1.0)`: `mask` and `probs` are masked with
    `mask != 255` before, the target behind it.
    """
    statement, hot = code.statement(call), call.func.value if isinstance(call.func, ast.Attribute) else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    index = call.args[1] if len(call.args) > 1 else None
    if last_name(call.func) not in ("scatter_", "scatter") or not isinstance(target, ast.Name):
        return ()
    if not isinstance(hot, ast.Call) or last_name(hot.func) != "zeros_like" or not hot.args:
        return ()
    probs, labels = hot.args[0], [n for n in below(index) if isinstance(n, ast.Name)] if index is not None else []
    unsqueezed = f"{written(labels[0])}.unsqueeze(1)" if len(labels) == 1 else ""
    if not isinstance(probs, ast.Name) or written(index) != unsqueezed or not ignored.lstrip("-").isdigit():
        return ()
    name = next((n for n in ("valid", "known", "counted") if n not in names_in(code.scope(call))), None)
    if name is None or index is None:
        return ()
    change = Change(code.file, f"leave the label {ignored} out of this term too")
    change.before(statement, f"{name} = ({labels[0].id} != {ignored}).unsqueeze(1)\n{probs.id} = {probs.id} * {name}")
    change.replace(index, f"{source_of(code.file, index)} * {name}")
    return change.insert(call.end_lineno or 0, call.end_col_offset or 0, f" * {name}").patches()
