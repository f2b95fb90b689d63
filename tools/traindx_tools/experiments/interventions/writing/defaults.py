"""Settings that stand in the source itself: fields of dataclasses, constants, entries of dictionaries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.experiments.interventions.writing.offsets import Offsets


@dataclass(frozen=True)
class Default:
    """One value in a source: `name` is `Config.lr`, `LR` or `CONFIG.lr`; the span is that of its expression."""

    name: str
    line: int
    start: int
    end: int
    """Characters of the text."""


def defaults_of(text: str, tree: ast.Module) -> Iterator[Default]:
    """The literals that a module sets at its top, in classes of fields, and in dictionaries that are bound there."""
    offsets = Offsets(text)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, (ast.AnnAssign, ast.Assign)):
                    yield from _bound(line, f"{node.name}.", offsets)
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            yield from _bound(node, "", offsets)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for line in function.body:
                if isinstance(line, (ast.AnnAssign, ast.Assign)) and isinstance(line.value, (ast.Dict, ast.Call)):
                    yield from _bound(line, f"{function.name}.", offsets)


def _bound(line: ast.AnnAssign | ast.Assign, before: str, offsets: Offsets) -> Iterator[Default]:
    target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0] if len(line.targets) == 1 else None
    if not isinstance(target, ast.Name) or line.value is None:
        return
    name, value = before + target.id, line.value
    if isinstance(value, ast.Call):
        for word in value.keywords:
            if word.arg == "default" and _literal(word.value):
                yield _default(name, word.value, offsets)
            elif word.arg and _literal(word.value) and ast.unparse(value.func).rpartition(".")[2] in (
                    "dict", "Namespace", "SimpleNamespace", "ConfigDict", "EasyDict"):
                yield _default(f"{name}.{word.arg}", word.value, offsets)
    elif isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _literal(inner):
                yield _default(f"{name}.{key.value}", inner, offsets)
    elif _literal(value):
        yield _default(name, value, offsets)


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _default(name: str, node: ast.expr, offsets: Offsets) -> Default:
    return Default(name, node.lineno, *offsets.span(node))
