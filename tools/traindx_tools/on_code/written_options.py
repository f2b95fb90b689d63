"""Entries of the configuration files that a project names, where code reads them by a constant key."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.source_files.configuration import data_of

_SUFFIXES = (".json", ".yaml", ".yml")
_MOST_FILES = 8
_DEEP = 8


def entry(look: Lookup, node: ast.expr) -> Any:
    """What `config["a"]["b"]` or `config.a.b` stands for: the only entry of that key; None where there is none."""
    key = _key(node)
    found = [v for table in _tables(look) for v in _under(table, key, _DEEP)] if key else []
    return found[0] if found and all(v == found[0] for v in found) else None


def _key(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return node.attr if isinstance(node, ast.Attribute) else ""


@kept
def _tables(look: Lookup) -> tuple[Mapping[str, Any], ...]:
    """The files that constants of the code name, each as the folder of its script holds it."""
    names = {(str(Path(code.file.path).parent), node.value): code.file.path for code in look.codes
             for node in code.of(ast.Constant) if isinstance(node.value, str) and node.value.endswith(_SUFFIXES)}
    read = (data_of(name, script) for (_, name), script in list(names.items())[:_MOST_FILES])
    return tuple(data for data in read if data is not None)


def _under(table: Mapping[str, Any], key: str, left: int) -> Iterator[Any]:
    for name, value in table.items():
        if name == key:
            yield value
        if isinstance(value, dict) and left > 0:
            yield from _under(value, key, left - 1)
