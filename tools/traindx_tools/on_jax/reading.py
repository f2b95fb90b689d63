"""Which attributes of its object a method reads: from its source, its own methods included; nothing is run."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

MOST_METHODS = 30


def attributes_read(fn: Callable[..., Any], owner: type) -> dict[str, tuple[str, int]]:
    """The attributes that `fn` and the methods of `owner` that it calls read from their first argument, with a line.

    Empty where the source cannot be read.
    """
    found: dict[str, tuple[str, int]] = {}
    waiting, seen = [fn], set[Any]()
    while waiting and len(seen) < MOST_METHODS:
        one = inspect.unwrap(waiting.pop())
        code = getattr(one, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        for name, line in _read(one):
            member = inspect.getattr_static(owner, name, None)
            if isinstance(member, property):
                waiting.extend(f for f in (member.fget,) if f is not None)
            elif isinstance(member, (classmethod, staticmethod)) or callable(member):
                waiting.append(getattr(member, "__func__", member))
            else:
                found.setdefault(name, (code.co_filename, line))
    return found


def _read(fn: Callable[..., Any]) -> list[tuple[str, int]]:
    try:
        lines, first = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return []
    function = next((n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)
    if function is None or not (function.args.posonlyargs or function.args.args):
        return []
    this = (*function.args.posonlyargs, *function.args.args)[0].arg
    return [(n.attr, first + n.lineno - 1) for n in ast.walk(function)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
            and isinstance(n.value, ast.Name) and n.value.id == this]
