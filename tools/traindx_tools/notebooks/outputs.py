"""What the cells of an executed notebook printed, as one text, and which line of it stands below which cell.

A notebook that was run and saved holds its own log: streams and tracebacks. Tables and pictures that a cell shows as
its value are left out: they are made for the eye.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traindx_tools.notebooks.cells import code_cells, execution_count

MOST_BYTES = 64 * 2**20
"""Bytes of a notebook that is read for its outputs: pictures make it large."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LISTED = re.compile(r"\s*\d+(?: |$)")
"""A line of source that IPython lists around the one that failed: nothing that was printed, and full of numbers."""
_ERRORS = frozenset({"error", "pyerr"})
"""How an output with a traceback is called; the second name is that of before 2015."""


@dataclass(frozen=True)
class Outputs:
    """The text, and for each cell that printed the line (1-based) of the text at which its output begins."""

    text: str
    starts: tuple[int, ...]
    cells: tuple[int, ...]
    """The numbers of these cells, in the same order."""

    @property
    def lines(self) -> int:
        """Lines of the text."""
        return self.text.count("\n")

    def place(self, line: int) -> tuple[int, int]:
        """The cell and the line (1-based) below it for a line of the text."""
        at = max(bisect_right(self.starts, line) - 1, 0)
        return self.cells[at], line - self.starts[at] + 1


def outputs_of_notebook(text: str) -> Outputs | None:
    """What the code cells printed, in the order in which they were executed last, where all of them tell it.

    None where this is no notebook or no cell printed anything.
    """
    try:
        cells = code_cells(json.loads(text))
    except (ValueError, RecursionError):
        return None
    printing = [(number, cell, printed) for number, cell in enumerate(cells or (), 1)
                if (printed := _printed(cell)).strip()]
    counts = [execution_count(cell) for _, cell, _ in printing]
    if all(counts):
        printing = [printing[i] for i in sorted(range(len(counts)), key=counts.__getitem__)]
    pieces, starts, numbers = [], [], []
    line = 1
    for number, _, printed in printing:
        starts.append(line)
        numbers.append(number)
        pieces.append(printed)
        line += printed.count("\n")
    return Outputs("".join(pieces), tuple(starts), tuple(numbers)) if pieces else None


def _printed(cell: Mapping[str, object]) -> str:
    """All that stands below a cell as text; it ends with a line's end where it is not empty."""
    outputs = cell.get("outputs")
    text, before = "", ""
    for name, piece in map(_piece, outputs if isinstance(outputs, list) else ()):
        if text and not text.endswith("\n") and name != before:  # a stream may be cut within a line, another begins one
            text += "\n"
        text, before = text + piece, name
    return text if not text or text.endswith("\n") else text + "\n"


def _piece(output: object) -> tuple[str, str]:
    """The stream that an output belongs to and its text."""
    if not isinstance(output, dict):
        return "", ""
    kind = output.get("output_type")
    if kind in _ERRORS:
        lines = "\n".join(_strings(output.get("traceback"))).split("\n")
        told = "\n".join("" if _LISTED.match(_COLOUR.sub("", line)) else line for line in lines)
        return "error", (told or f"{output.get('ename')}: {output.get('evalue')}") + "\n"
    if kind != "stream":
        return "", ""
    return str(output.get("name", output.get("stream"))), "".join(_strings(output.get("text")))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (v for v in value if isinstance(v, str))
