"""Patches put into a text, and whether what comes out is Python.

`Patch.original` and `Patch.replacement` are lines joined by a newline, without one at the end.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from traindx_tools.finding import Patch
from traindx_tools.on_code.source import SourceFile

MOST_CHECKED = 4_000_000
"""Letters of one file that are parsed again to check its patches; a patch that cannot be checked is not offered."""


def applied(text: str, patches: Sequence[Patch]) -> str:
    """The text with patches applied, from the last line up. Raises ValueError where the original has changed."""
    lines = text.split("\n")
    for patch in sorted(patches, key=lambda p: p.line, reverse=True):
        if "\n".join(lines[patch.line - 1 : patch.end_line]) != patch.original:
            raise ValueError(f"{patch.file}:{patch.line} no longer reads as when the patch was made")
        new = [] if patch.replacement == "" and patch.original else patch.replacement.split("\n")
        lines[patch.line - 1 : patch.end_line] = new
    return "\n".join(lines)


def still_parses(file: SourceFile, patches: Sequence[Patch]) -> bool:
    """Whether the file is Python with these patches in it; False where the budget of the file is spent.

    The statements of a block that they touch are parsed alone, with those beside them: what is Python there is Python
    among the others. Raises ValueError where two patches touch one line.
    """
    first, last = min(p.line for p in patches), max(p.end_line for p in patches)
    return any(_is_python(file, _standing(file, patches, *lines), column)
               for *lines, column in reversed([(1, len(file.lines), 0), *_around(file, first, last)]))  # fmt: skip


def _around(file: SourceFile, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """First and last line of the statements of a block around these lines, and their column: outer blocks first."""
    block = file.tree.body
    while block:
        starts, ends = _lines(file, block)
        low, high = bisect_left(ends, first - 1), bisect_right(starts, last + 1)
        beside = slice(max(0, low - 1), high + 1)
        yield min([first, *starts[beside]]), max([last, *ends[beside]]), block[0].col_offset
        inner = [getattr(n, name, ()) for s in block[low:high] for n in (s, *getattr(s, "handlers", ()))
                 for name in ("body", "orelse", "finalbody")]  # fmt: skip
        block = next((b for b in inner if b and _lines(file, b)[0][0] <= first and last <= _lines(file, b)[1][-1]), [])


def _lines(file: SourceFile, block: list[ast.stmt]) -> tuple[list[int], list[int]]:
    """The first lines of the statements of a block, decorators included, and their last ones."""
    known: dict[int, tuple[list[int], list[int]]] = file.__dict__.setdefault("_lines_of_blocks", {})
    if id(block) not in known:
        starts = [min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))]) for s in block]
        known[id(block)] = starts, [s.end_lineno or s.lineno for s in block]
    return known[id(block)]


def _standing(file: SourceFile, patches: Sequence[Patch], first: int, last: int) -> str:
    moved = [replace(p, line=p.line - first + 1, end_line=p.end_line - first + 1) for p in patches]
    return applied("\n".join(file.lines[first - 1 : last]), moved)


def _is_python(file: SourceFile, text: str, column: int) -> bool:
    """Whether a text is Python, all of it in one column."""
    known: dict[tuple[str, int], bool] = file.__dict__.setdefault("_parses", {})
    if (text, column) not in known:
        checked = file.__dict__["_checked"] = file.__dict__.get("_checked", 0) + len(text)
        if checked > MOST_CHECKED:
            return False
        try:
            block: Any = ast.parse(f"if 1:\n{text}" if column else text).body
            known[text, column] = not column or (len(block) == 1 and not block[0].orelse and all(
                s.col_offset == column for s in block[0].body))
        except (SyntaxError, ValueError):
            known[text, column] = False
    return known[text, column]
