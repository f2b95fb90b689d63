"""Small certain changes to a source as patches: whole lines in, whole lines out, indentation kept.

`Patch.original` and `Patch.replacement` are lines joined by a newline, without one at the end.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.source import SourceFile, below
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


MOST_CHECKED = 4_000_000
"""Letters of one file that are parsed again to check its patches; a patch that cannot be checked is not offered."""


def still_parses(file: SourceFile, patches: Sequence[Patch]) -> bool:
    """Whether the file is Python with these patches, as far as the budget for asking that goes.

    The smallest statements around the patches say it; the whole file where they do not.
    """
    left = sorted(patches, key=lambda p: (p.line, p.end_line))
    while left:
        first, *left = left
        held = [first]
        around = _around(file, first)
        while left and around is not None and left[0].line <= (around.end_lineno or 0) + 1:
            held.append(left.pop(0))  # it stands in the same statement, or right behind it
            around = _holding(file, _first(around), max(around.end_lineno or 0, held[-1].end_line))
        if around is None or not _is_sound(file, around, held, patches):
            return _parses(file, applied("\n".join(file.lines), tuple(patches)))
    return True


def _is_sound(file: SourceFile, around: ast.stmt, held: Sequence[Patch], patches: Sequence[Patch]) -> bool:
    """Whether what becomes of one statement may stand in its place."""
    text = _standing(file, around, held)
    if text == _BLOCK:  # taken out: the block must not be left empty
        block = siblings(file, around)
        at = bisect_left(block, around.lineno, key=lambda s: s.lineno)
        return any(not _touched(s, patches) for s in (*block[max(0, at - 1) : at], *block[at + 1 : at + 2]))
    return _parses(file, text, around.col_offset)


def _touched(statement: ast.stmt, patches: Sequence[Patch]) -> bool:
    last = statement.end_lineno or statement.lineno
    return any(p.line <= last and p.end_line >= _first(statement) for p in patches)


def _parses(file: SourceFile, text: str, column: int = 0) -> bool:
    """Whether a text is Python, all of its block in one column; False where the budget of the file is spent."""
    known: dict[tuple[str, int], bool] = file.__dict__.setdefault("_parses", {})
    if (text, column) not in known:
        checked = file.__dict__.get("_checked", 0) + len(text)
        if checked > MOST_CHECKED:
            return False
        file.__dict__["_checked"] = checked
        known[text, column] = _is_python(text, column)
    return known[text, column]


def _is_python(text: str, column: int) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    block = tree.body[0] if column and len(tree.body) == 1 else None
    return not column or (isinstance(block, ast.If) and not block.orelse
                          and all(s.col_offset == column for s in block.body))  # fmt: skip


_BLOCK = "if 1:\n"


def _standing(file: SourceFile, around: ast.stmt, patches: Sequence[Patch]) -> str:
    """The patched lines of a statement, in a block of their own where they are indented."""
    first, last = _first(around), around.end_lineno or around.lineno
    moved = tuple(Patch(p.file, p.line - first + 1, p.end_line - first + 1, p.original, p.replacement, p.summary)
                  for p in patches)  # fmt: skip
    text = applied("\n".join(file.lines[first - 1 : last]), moved)
    pad = indentation(file, first)
    return f"{_BLOCK}{text}" if pad else text


def _first(statement: ast.stmt) -> int:
    """Its first line, that of its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _around(file: SourceFile, patch: Patch) -> ast.stmt | None:
    """The smallest statement of its own lines that a patch changes, or beside which it puts others."""
    if patch.end_line >= patch.line:
        return _holding(file, patch.line, patch.end_line)
    lines, statements = _starts(file)
    column = len(patch.replacement) - len(patch.replacement.lstrip())
    at = bisect_left(lines, patch.line)
    if at < len(lines) and lines[at] == patch.line and statements[at].col_offset == column:
        return statements[at] if _has_own_lines(file, statements[at]) else None
    above = _holding(file, patch.end_line, patch.end_line)
    while above is not None and above.col_offset > column:
        above = _held_by(file, above, patch.end_line)
    return above if above is not None and above.col_offset == column else None


def _holding(file: SourceFile, first: int, last: int) -> ast.stmt | None:
    """The smallest statement of its own lines that holds these."""
    lines, statements = _starts(file)
    at = bisect_right(lines, first) - 1
    if at < 0:
        return None
    inner = statements[at]
    found = (inner.end_lineno or 0) >= last and _has_own_lines(file, inner)
    return inner if found else _held_by(file, inner, last)


def _held_by(file: SourceFile, inner: ast.AST, last: int) -> ast.stmt | None:
    """The smallest statement around another one that has lines of its own and reaches to a line."""
    return next((up for up in syntax(file).above(inner) if isinstance(up, ast.stmt)
                 and (up.end_lineno or 0) >= last and _has_own_lines(file, up)), None)


def _starts(file: SourceFile) -> tuple[list[int], list[ast.stmt]]:
    """Every statement of a file by its first line, an outer one before those in it; found once."""
    known: tuple[list[int], list[ast.stmt]] | None = file.__dict__.get("_starts")
    if known is None:
        found = sorted(_statements(file.tree), key=lambda s: (_first(s), s.lineno, s.col_offset))
        known = file.__dict__["_starts"] = [_first(s) for s in found], found
    return known


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    return (n for n in below(tree) if isinstance(n, ast.stmt))


def _has_own_lines(file: SourceFile, statement: ast.stmt) -> bool:
    """Whether it shares no line with another statement, and is no `elif`, which does not stand alone."""
    start = file.line(statement.lineno).encode("utf-8")[statement.col_offset :]
    return _alone(file, statement) and not (isinstance(statement, ast.If) and start.startswith(b"elif"))


def applied(text: str, patches: tuple[Patch, ...]) -> str:
    """The text with patches applied, from the last line up. Raises ValueError where the original has changed."""
    lines = text.split("\n")
    for patch in sorted(patches, key=lambda p: p.line, reverse=True):
        if "\n".join(lines[patch.line - 1 : patch.end_line]) != patch.original:
            raise ValueError(f"{patch.file}:{patch.line} no longer reads as when the patch was made")
        new = [] if patch.replacement == "" and patch.original else patch.replacement.split("\n")
        lines[patch.line - 1 : patch.end_line] = new
    return "\n".join(lines)
