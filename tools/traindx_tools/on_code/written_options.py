"""Entries of the configuration files that a project names, where code reads them by a constant key."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.source_files.configuration import text_of

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
    return tuple(_read(look))


def _read(look: Lookup) -> Iterator[Mapping[str, Any]]:
    names: dict[tuple[str, str], str] = {}
    for code in look.codes:
        for node in code.of(ast.Constant):
            if isinstance(node.value, str) and node.value.endswith((".json", ".yaml", ".yml")):
                names[str(Path(code.file.path).parent), node.value] = code.file.path
    for (_, name), script in list(names.items())[:_MOST_FILES]:
        text = text_of(name, script)
        if text is None:
            continue
        try:
            data = json.loads(text) if name.endswith(".json") else _yaml(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield data


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _under(table: Mapping[str, Any], key: str, left: int) -> Iterator[Any]:
    for name, value in table.items():
        if name == key:
            yield value
        if isinstance(value, dict) and left > 0:
            yield from _under(value, key, left - 1)
