"""Weights that are trained in half precision kept in float32 (C119, C124)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written

_CASTS = frozenset({"half", "bfloat16"})


def kept_in_float32(file: SourceFile | None, line: int, autocast_needed: bool) -> tuple[Patch, ...]:
    """Takes the model's cast at a line away, and the same cast of its inputs where no autocast makes it needless."""
    if file is None or (autocast_needed and "autocast" not in file.text):
        return ()
    code = syntax(file)
    casts = [c for c in code.of(ast.Call) if c.lineno == line and _is_cast(c)]
    if len(casts) != 1:
        return ()
    change = Change(file, "keep the weights in float32")
    _without(code, change, casts[0])
    if "autocast" not in file.text:
        kind = _dtype(casts[0])
        for other in code.of(ast.Call):
            if other is not casts[0] and _is_cast(other) and _dtype(other) == kind and kind:
                _without(code, change, other)
    return change.patches()


def _is_cast(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in _CASTS or (call.func.attr == "to" and bool(_dtype(call)))


def _dtype(call: ast.Call) -> str:
    """What a call casts to, as it is written: the last argument of `.to(...)` that is no device."""
    if last_name(call.func) in _CASTS:
        return f".{last_name(call.func)}()"
    given = [*(k.value for k in call.keywords if k.arg == "dtype"), *reversed(call.args)]
    kinds = [a for a in given if not isinstance(a, ast.Constant) and not _is_device(written(a).lower())]
    return written(kinds[0]) if kinds else ""


def _is_device(text: str) -> bool:
    return ("device" in text and "dtype" not in text) or text in ("cpu", "cuda", "rank", "local_rank")


def _without(code: Syntax, change: Change, call: ast.Call) -> None:
    """The receiver alone, the statement gone, or the call without its dtype."""
    statement = code.statement(call)
    assert isinstance(call.func, ast.Attribute)
    if isinstance(statement, ast.Expr) and statement.value is call:
        change.delete(statement)
    elif len(call.args) + len(call.keywords) <= 1:
        change.unwrap(call, call.func.value)
    else:
        change.spoil()
