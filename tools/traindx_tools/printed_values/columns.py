"""What the columns of a print without words are: `print(epoch, loss.item())` writes "9 0.53", which names nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import last_name
from traindx_tools.printed_values.meanings import Meanings
from traindx_tools.printed_values.names import MAX_BYTES, Printed

_BETWEEN = re.compile(r"[\s,;|]*")
"""What may stand between two numbers."""
_KEEPS = frozenset({"item", "cpu", "detach", "mean", "tolist", "numpy", "float", "round", "str", "int"})
_MOST = 12
"""Columns of one print: more are a table of something else."""


@dataclass(frozen=True)
class BarePrint:
    """A print of values alone: their names in order, where it stands, and what is certain of them."""

    names: tuple[str, ...]
    file: str
    line: int
    printed: tuple[Printed, ...]


def bare_prints(files: Iterable[tuple[str, str]]) -> tuple[BarePrint, ...]:
    """Every print of two values or more without a word, in these files (path, text). What does not parse is skipped."""
    found: list[BarePrint] = []
    for path, text in files:
        if len(text) <= MAX_BYTES and "print(" in text:
            try:
                tree = ast.parse(text)
                found += _in_tree(path, tree)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return tuple(found)


def _in_tree(path: str, tree: ast.Module) -> Iterator[BarePrint]:
    calls = [n for n in below(tree) if isinstance(n, ast.Call) and last_name(n.func) == "print"]
    columns = [(call, values) for call in calls if len(values := _values(call)) > 1]
    meanings = Meanings(tree) if columns else None
    for call, values in columns:
        names = [_name(v) for v in values]
        if meanings is None or "" in names or len(set(names)) < len(names) or len(names) > _MOST:
            continue
        scope = meanings.scope_of.get(call)
        known = [(n, v, meanings.of(v, scope)) for n, v in zip(names, values, strict=True)] if scope is not None else []
        printed = tuple(Printed(n, m, path, call.lineno, ast.unparse(v)[:120]) for n, v, m in known if m is not None)
        yield BarePrint(tuple(names), path, call.lineno, printed)


def _values(call: ast.Call) -> Sequence[ast.expr]:
    """The values that a print writes beside one another; none where a word stands among them."""
    separators = [k.value for k in call.keywords if k.arg == "sep"]
    if any(not isinstance(s, ast.Constant) or not _is_between(s.value) for s in separators):
        return ()
    values: list[ast.expr] = []
    for part in call.args:
        pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
        for piece in pieces:
            if isinstance(piece, ast.Constant):
                if not _is_between(piece.value):
                    return ()
            elif isinstance(piece, ast.Starred):
                return ()
            else:
                values.append(piece.value if isinstance(piece, ast.FormattedValue) else piece)
    return values


def _is_between(value: object) -> bool:
    return value is None or (isinstance(value, str) and _BETWEEN.fullmatch(value) is not None)


def _name(value: ast.expr) -> str:
    """The name of a value: "cost" of `cost.item()`, `round(cost, 3)`, `cost / n`, `history["cost"]`."""
    for _ in range(6):
        if isinstance(value, ast.Call) and last_name(value.func) in _KEEPS:
            inner = value.func.value if isinstance(value.func, ast.Attribute) else value.args[0] if value.args else None
            if inner is None:
                return ""
            value = inner
        elif isinstance(value, ast.BinOp):
            value = value.left
        elif isinstance(value, ast.Subscript):
            key = value.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return key.value if key.value.isidentifier() else ""
            value = value.value
        else:
            break
    return last_name(value)
