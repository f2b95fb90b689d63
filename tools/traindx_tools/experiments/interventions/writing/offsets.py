"""Where a syntax tree's lines and columns stand in its text."""

from __future__ import annotations

import ast
from bisect import bisect_right


class Offsets:
    """Characters of a text by line (from 1) and column (from 0, in UTF-8 bytes, as `ast` counts)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First character and the one behind the last. `node` has to have a place, as expressions and statements do."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return self._place(line, column), self._place(getattr(node, "end_lineno", line),
                                                      getattr(node, "end_col_offset", column))

    def of(self, node: ast.AST) -> str:
        """The node as it is written."""
        start, end = self.span(node)
        return self.text[start:end]

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a character, both from 1 and the column in characters, as an editor counts them."""
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def _place(self, line: int, column: int) -> int:
        start = self._starts[line - 1]
        return start + len(self.text[start:self._starts[line]].encode()[:column].decode("utf-8", "replace"))
