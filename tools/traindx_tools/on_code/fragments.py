"""Pasted code: twenty lines without their imports, indented as they stood in a function.

People write `nn`, `F`, `np` for the same modules everywhere. Where a source imports nothing at all and binds such a
name nowhere, it is read as if it did (`[usual_imports]` of `knowledge/names.toml`). The text stays as it is: places in
it are those that a person sees.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import lru_cache

from traindx_tools.knowledge.tables import table

_IMPORTS = re.compile(r"^\s*(?:import|from)\s", re.MULTILINE)


def parsed(text: str) -> ast.Module:
    """The tree of a text, also where all its lines are indented. Raises what `ast.parse` raises."""
    try:
        tree = ast.parse(text)
    except IndentationError:
        tree = _indented(text)
    return tree if _IMPORTS.search(text) else _with_usual_imports(tree)


def _indented(text: str) -> ast.Module:
    """The tree of lines that are indented alike, with the columns at which they stand."""
    bare = textwrap.dedent(text)
    tree = ast.parse(bare)
    first = next(line for line in text.splitlines() if line.strip())
    shift = len(first) - len(first.lstrip())
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += shift
        if getattr(node, "end_col_offset", None) is not None:
            node.end_col_offset += shift  # type: ignore[attr-defined]
    return tree


def _with_usual_imports(tree: ast.Module) -> ast.Module:
    usual = _usual()
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    wanted = sorted(used & usual.keys() - bound)
    at = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    tree.body[at:at] = [_imported(name, usual[name]) for name in wanted]
    return tree


def _imported(name: str, full: str) -> ast.stmt:
    """The import that binds a name, at the start of the text."""
    head, _, last = full.rpartition(".")
    written = f"from {head} import {last}" if name[0].isupper() and len(name) > 1 else f"import {full} as {name}"
    return ast.parse(written).body[0]


@lru_cache(maxsize=1)
def _usual() -> dict[str, str]:
    return {str(name): str(full) for name, full in table("names.toml")["usual_imports"].items()}
