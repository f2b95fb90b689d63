"""Notebooks as code: the code cells one after the other, and which line belongs to which cell.

Cells are counted as ruff counts them: code cells only, the first is 1. A line within a cell is 1-based too.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from traindx_tools.finding import Finding, Value
from traindx_tools.notebooks.ipython import python_of


@dataclass(frozen=True)
class Notebook:
    """The code cells one after the other, the line at which each begins, and which were left out, in words."""

    code: str
    starts: tuple[int, ...]
    left_out: str = ""


def code_of_notebook(text: str, most: int | None = None) -> Notebook | str:
    """The code of a notebook's JSON; in words what is wrong where it is none of Python, or more than `most` characters.

    IPython's own forms become Python and cells that are none become empty lines, so that line numbers stay.
    """
    read, cells = _read(text)
    if cells is None:
        return f"not parsed: {why_no_notebook(text)}"
    language = _language(read)
    if language and "python" not in language.lower():
        return f"not parsed: a notebook of {language[:40]}, not of Python"
    sources = [source_of(cell) for cell in cells]
    if most is not None and sum(map(len, sources)) > most:
        return f"refused: its code is larger than {most:,} bytes"
    starts, code, left_out = [], [], []
    line = 1
    for number, source in enumerate(sources, 1):
        cell = python_of(source)
        starts.append(line)
        code.append(cell.code)
        line += cell.code.count("\n") + 1
        if cell.left_out:
            left_out.append(f"cell {number} ({cell.left_out})")
    if left_out and len(left_out) == len(code):
        return f"not parsed: no cell is Python: {_some(left_out)}"
    return Notebook("\n".join(code), tuple(starts), f"read without {_some(left_out)}" if left_out else "")


def why_no_notebook(text: str) -> str:
    """In words why a text is no notebook; "" where it is one."""
    read, cells = _read(text)
    if cells is not None:
        return ""
    why = "its JSON is broken or nested beyond reason" if read is _BROKEN else "JSON with a list of cells was expected"
    return f"no notebook: {why}. Save it once more in Jupyter"


def _read(text: str) -> tuple[object, list[Mapping[str, object]] | None]:
    """The JSON of a text and the code cells in it."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return _BROKEN, None
    return read, code_cells(read)


_BROKEN = object()
MOST_TOLD = 5
"""Cells that a note names one by one."""


def _some(cells: Sequence[str]) -> str:
    more = f" and {len(cells) - MOST_TOLD} more" if len(cells) > MOST_TOLD else ""
    return ", ".join(cells[:MOST_TOLD]) + more


def code_cells(read: object) -> list[Mapping[str, object]] | None:
    """The code cells, of notebooks of before 2015 those of every worksheet; None where this is no notebook."""
    if not isinstance(read, dict):
        return None
    held = [read, *(read["worksheets"] if isinstance(read.get("worksheets"), list) else ())]
    lists = [h["cells"] for h in held if isinstance(h, dict) and isinstance(h.get("cells"), list)]
    if not lists:
        return None
    return [c for cells in lists for c in cells if isinstance(c, dict) and c.get("cell_type") == "code"]


def source_of(cell: Mapping[str, object]) -> str:
    """The source of a cell as it is stored, "" where there is none."""
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def execution_count(cell: Mapping[str, object]) -> int:
    """As the how many-th a cell was executed last, 0 where it is not told."""
    count = cell.get("execution_count", cell.get("prompt_number"))
    return count if isinstance(count, int) and count > 0 else 0


def _language(read: object) -> str:
    """The language that a notebook says it is written in, "" where it says none."""
    about = read.get("metadata") if isinstance(read, dict) else None
    for part, name in (("language_info", "name"), ("kernelspec", "language")):
        said = about.get(part) if isinstance(about, dict) else None
        if isinstance(said, dict) and isinstance(said.get(name), str) and said[name]:
            return str(said[name])
    return ""


def cell_of(line: int, cells: Sequence[int]) -> tuple[int, int]:
    """The cell and the line in it for a line of the joined code."""
    cell = max(bisect_right(cells, line), 1)
    return cell, line - cells[cell - 1] + 1


def in_cells(finding: Finding, path: str, cells: Sequence[int], names: Sequence[str] = ()) -> Finding:
    """The finding with lines of this notebook given as cell and line: `a.ipynb:12` becomes `a.ipynb:cell 3:2`.

    `names`: by which the finding may call the notebook, by default its path. A place that has a cell stays as it is. A
    change that touches the notebook is dropped as a whole: it names lines of the joined code, and a notebook is JSON.
    """
    def placed(match: re.Match[str]) -> str:
        return "{}:cell {}:{}".format(match[1], *cell_of(int(match[2]), cells))

    called = "|".join(re.escape(n) for n in sorted({path, *names}, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./-])({called}):(\d+)\b")

    def told(value: Value) -> Value:
        return pattern.sub(placed, value) if isinstance(value, str) else value

    where, statement = finding.where, pattern.sub(placed, finding.statement)
    measured = {k: told(v) for k, v in finding.measured.items()}
    patch = () if any(p.file == path for p in finding.patch) else finding.patch
    if where.file != path or where.line is None or where.cell is not None:
        return replace(finding, statement=statement, measured=measured, patch=patch)
    cell, line = cell_of(where.line, cells)

    def beside(match: re.Match[str]) -> str:
        other, at = cell_of(int(match[1]), cells)
        return f"line {at}" if other == cell else f"line {at} of cell {other}"

    statement = re.sub(r"\bline (\d+)\b", beside, statement)
    end = None if where.end_line is None else max(line, where.end_line - where.line + line)
    return replace(finding, statement=statement, measured=measured, patch=patch,
                   where=replace(where, cell=cell, line=line, end_line=end))
