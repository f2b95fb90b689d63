"""Notebooks as code: the code cells one after the other, and which line belongs to which cell.

Cells are counted as ruff counts them: code cells only, the first is 1. A line within a cell is 1-based too.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from traindx_tools.finding import Finding, Value


def code_of_notebook(text: str) -> tuple[str, tuple[int, ...]]:
    """The code of a notebook's JSON and the line at which each code cell begins; the text itself if it is none.

    Magics and shell lines become comments, so that line numbers stay.
    """
    try:
        cells = json.loads(text).get("cells", [])
        sources = ["".join(c.get("source", [])) for c in cells if c.get("cell_type") == "code"]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return text, ()
    starts, code = [], []
    line = 1
    for source in sources:
        starts.append(line)
        code.append(_without_magics(source))
        line += code[-1].count("\n") + 1
    return "\n".join(code), tuple(starts)


def cell_of(line: int, cells: Sequence[int]) -> tuple[int, int]:
    """The cell and the line in it for a line of the joined code."""
    cell = max(bisect_right(cells, line), 1)
    return cell, line - cells[cell - 1] + 1


def in_cells(finding: Finding, path: str, cells: Sequence[int]) -> Finding:
    """The finding with lines of this notebook given as cell and line: `a.ipynb:12` becomes `a.ipynb:cell 3:2`.

    Its patches are dropped: they name lines of the joined code, and a notebook is JSON.
    """
    def placed(match: re.Match[str]) -> str:
        return "{}:cell {}:{}".format(path, *cell_of(int(match[1]), cells))

    pattern = re.compile(re.escape(path) + r":(\d+)\b")

    def told(value: Value) -> Value:
        return pattern.sub(placed, value) if isinstance(value, str) else value

    where, statement = finding.where, pattern.sub(placed, finding.statement)
    measured = {k: told(v) for k, v in finding.measured.items()}
    if where.file != path or where.line is None:
        return replace(finding, statement=statement, measured=measured)
    cell, line = cell_of(where.line, cells)

    def beside(match: re.Match[str]) -> str:
        other, at = cell_of(int(match[1]), cells)
        return f"line {at}" if other == cell else f"line {at} of cell {other}"

    statement = re.sub(r"\bline (\d+)\b", beside, statement)
    end = None if where.end_line is None else max(line, where.end_line - where.line + line)
    return replace(finding, statement=statement, measured=measured, patch=(),
                   where=replace(where, cell=cell, line=line, end_line=end))


def _without_magics(cell: str) -> str:
    return "\n".join("pass  #" + line if line.lstrip()[:1] in ("%", "!") else line for line in cell.splitlines())
