"""The same program with intermediate variables: what a call is given stands in a line of its own before it.

    loss = criterion(model(x), y)     becomes     held_1 = model(x); loss = criterion(held_1, y)

Together with `on_code/renaming.py` (own names taken away) it tells whether a check follows what a program does or how
it is spelled. Python evaluates the function, then its arguments from left to right; a call is lifted only where
everything that was to run before it has no effect or was lifted too, so the program does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import count

_HELD = (ast.Name, ast.Constant, ast.Attribute)
"""What may be read later than written: naming it runs nothing."""


def with_intermediates(text: str) -> str:
    """The source with nested calls taken apart; as it is where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names = (name for n in count(1) if (name := f"held_{n}") not in taken)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            continue
        for part in ("body", "orelse", "finalbody"):
            block = getattr(node, part, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                block[:] = [line for s in block for line in _apart(s, names)]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _apart(statement: ast.stmt, names: Iterator[str]) -> list[ast.stmt]:
    """The statement, and before it those that hold what its calls are given."""
    if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) or not isinstance(statement.value, ast.Call):
        return [statement]
    before: list[ast.stmt] = []
    _lift(statement.value, before, names)
    return [*before, statement]


def _lift(call: ast.Call, before: list[ast.stmt], names: Iterator[str]) -> bool:
    """Lifts what a call is given, from left to right; False where something had to stay, and all that follows."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if isinstance(receiver, ast.Call):
        if not _lift(receiver, before, names):
            return False
        if isinstance(call.func, ast.Attribute):
            call.func.value = _held(receiver, before, names)
    elif not isinstance(receiver, _HELD):
        return False
    for position, given in enumerate(call.args):
        if isinstance(given, ast.Call):
            if not _lift(given, before, names):
                return False
            call.args[position] = _held(given, before, names)
        elif not isinstance(given, _HELD):
            return False
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Call):
            if not _lift(keyword.value, before, names):
                return False
            keyword.value = _held(keyword.value, before, names)
        elif not isinstance(keyword.value, _HELD):
            return False
    return True


def _held(call: ast.Call, before: list[ast.stmt], names: Iterator[str]) -> ast.expr:
    if isinstance(call.func, ast.Name) and call.func.id == "super":
        return call
    name = next(names)
    before.append(ast.Assign([ast.Name(name, ast.Store())], call))
    return ast.Name(name, ast.Load())
