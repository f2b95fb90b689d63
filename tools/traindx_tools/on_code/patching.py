"""Small certain changes to a source as patches: whole lines in, whole lines out, indentation kept.

`Patch.original` and `Patch.replacement` are lines joined by a newline, without one at the end.
"""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import syntax


def indentation(file: SourceFile, line: int) -> str:
    """The white space at the start of a line."""
    text = file.line(line)
    return text[: len(text) - len(text.lstrip())]


def insert_before(file: SourceFile, statement: ast.stmt, code: str, summary: str) -> Patch | None:
    """Put a statement before another one; None where that shares its line with something else."""
    if not _alone(file, statement):
        return None
    pad = indentation(file, statement.lineno)
    return Patch(file.path, statement.lineno, statement.lineno - 1, "", pad + code, summary)


def insert_after(file: SourceFile, statement: ast.stmt, code: str, summary: str) -> Patch | None:
    """Put a statement after another one; None where that shares its line with something else."""
    end = statement.end_lineno
    if end is None or not _alone(file, statement):
        return None
    pad = indentation(file, statement.lineno)
    return Patch(file.path, end + 1, end, "", pad + code, summary)


def replace_text(file: SourceFile, node: ast.AST, code: str, summary: str) -> Patch | None:
    """Put other code in place of an expression that stands on one line."""
    line, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if line is None or line != end:
        return None
    text = file.line(line)
    raw = text.encode("utf-8")
    start, stop = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
    try:
        changed = (raw[:start] + code.encode("utf-8") + raw[stop:]).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return Patch(file.path, line, line, text, changed, summary)


def statement_of(file: SourceFile, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that holds an expression."""
    return syntax(file).statement(node)


def siblings(file: SourceFile, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements in which a statement stands."""
    up = syntax(file).parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(up, name, None)
        if isinstance(block, list) and any(s is statement for s in block):
            return block
    return []


def _alone(file: SourceFile, statement: ast.stmt) -> bool:
    first = file.line(statement.lineno)
    last = file.line(statement.end_lineno or statement.lineno)
    after = last.encode("utf-8")[statement.end_col_offset or 0 :].decode("utf-8", "replace").strip()
    return not first.encode("utf-8")[: statement.col_offset].strip() and (not after or after.startswith("#"))


def applied(text: str, patches: tuple[Patch, ...]) -> str:
    """The text with patches applied, from the last line up. Raises ValueError where the original has changed."""
    lines = text.split("\n")
    for patch in sorted(patches, key=lambda p: p.line, reverse=True):
        if "\n".join(lines[patch.line - 1 : patch.end_line]) != patch.original:
            raise ValueError(f"{patch.file}:{patch.line} no longer reads as when the patch was made")
        new = [] if patch.replacement == "" and patch.original else patch.replacement.split("\n")
        lines[patch.line - 1 : patch.end_line] = new
    return "\n".join(lines)
