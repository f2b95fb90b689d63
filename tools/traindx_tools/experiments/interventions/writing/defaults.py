"""Settings that stand in the source itself: fields of dataclasses, constants, entries of dictionaries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


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
    offsets = _offsets(text)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, (ast.AnnAssign, ast.Assign)):
                    yield from _bound(line, f"{node.name}.", text, offsets)
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            yield from _bound(node, "", text, offsets)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for line in function.body:
                if isinstance(line, (ast.AnnAssign, ast.Assign)) and isinstance(line.value, (ast.Dict, ast.Call)):
                    yield from _bound(line, f"{function.name}.", text, offsets)


def _bound(line: ast.AnnAssign | ast.Assign, before: str, text: str, offsets: list[int]) -> Iterator[Default]:
    target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0] if len(line.targets) == 1 else None
    if not isinstance(target, ast.Name) or line.value is None:
        return
    name, value = before + target.id, line.value
    if isinstance(value, ast.Call):
        for word in value.keywords:
            if word.arg == "default" and _literal(word.value):
                yield _default(name, word.value, text, offsets)
            elif word.arg and _literal(word.value) and ast.unparse(value.func).rpartition(".")[2] in (
                    "dict", "Namespace", "SimpleNamespace", "ConfigDict", "EasyDict"):
                yield _default(f"{name}.{word.arg}", word.value, text, offsets)
    elif isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _literal(inner):
                yield _default(f"{name}.{key.value}", inner, text, offsets)
    elif _literal(value):
        yield _default(name, value, text, offsets)


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _default(name: str, node: ast.expr, text: str, offsets: list[int]) -> Default:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Default(name, node.lineno, _place(text, offsets, node.lineno, node.col_offset),
                   _place(text, offsets, node.end_lineno, node.end_col_offset))


def _offsets(text: str) -> list[int]:
    found, at = [0], 0
    for line in text.split("\n"):
        at += len(line) + 1
        found.append(at)
    return found


def _place(text: str, offsets: list[int], line: int, column: int) -> int:
    """Of a line and a column in UTF-8 bytes, the character of the text."""
    start = offsets[line - 1]
    return start + len(text[start:offsets[line]].encode()[:column].decode("utf-8", "replace"))
