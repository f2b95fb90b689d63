"""The places of a run in its notebooks: every line that some file of a notebook counts, as cell and line.

Three counts lead to a cell. The follower counts the lines of all code cells joined. A kernel compiles each cell as a
file of its own, `/tmp/ipykernel_PID/NUMBER.py`, whose number is the 32-bit MurmurHash2 of the cell's source (seed
0xC70F6907, `ipykernel.compiler`). A traceback of IPython counts executions: `Cell In[3], line 7`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from traindx_tools.finding import Finding, Value
from traindx_tools.notebooks.cells import cell_of, code_cells, code_of_notebook, execution_count, in_cells, source_of
from traindx_tools.notebooks.outputs import MOST_BYTES, Outputs, outputs_of_notebook
from traindx_tools.on_logs.run import ErrorEvent, Frame, Run
from traindx_tools.scope.copies import executed_copies
from traindx_tools.source_files.texts import MAX_NOTEBOOK_BYTES

MOST_BOOKS = 20
"""Notebooks in which places are looked for."""
_KERNEL_PLACE = re.compile(r"(?:[^\s:'\"(]*[/\\])?ipykernel_\d+[/\\](?P<hash>\d+)\.py(?::(?P<line>\d+)\b)?")
_EXECUTED = re.compile(r"(?:Cell )?In ?\[(\d+)\]|<ipython-input-(\d+)-\w+>")


def kernel_number(source: str) -> int:
    """The number by which an IPython kernel calls the file of a cell with this source: MurmurHash2, 32 bits."""
    data = source.encode("utf-8", "surrogatepass")
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0xC70F6907 ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


@dataclass(frozen=True)
class Book:
    """One notebook as far as places go."""

    path: str
    starts: tuple[int, ...]
    """The line of the joined code at which each code cell begins; empty where it is no Python."""
    numbers: Mapping[int, int] = field(default_factory=dict)
    """The cell (from 1) of each file of a kernel."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """The cell that was executed as the n-th."""
    sources: tuple[str, ...] = ()
    """The source of each code cell, as it is stored."""
    outputs: Outputs | None = None


def read_book(path: str) -> Book | None:
    """A notebook's places; None where it cannot be read or is none: a pipe of that name would be waited for."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MOST_BYTES)
        text = raw.decode("utf-8-sig", errors="replace")
        cells = code_cells(json.loads(text))
    except (OSError, ValueError, RecursionError):
        return None
    if cells is None:
        return None
    joined = code_of_notebook(text) if len(raw) <= MAX_NOTEBOOK_BYTES else ""
    numbers: dict[int, int] = {}
    counts: dict[int, int] = {}
    for number, cell in enumerate(cells, 1):
        numbers.setdefault(kernel_number(source_of(cell)), number)
        if count := execution_count(cell):
            counts.setdefault(count, number)
    return Book(path, () if isinstance(joined, str) else joined.starts, numbers, counts, tuple(map(source_of, cells)),
                outputs_of_notebook(text))


@dataclass(frozen=True)
class Notebooks:
    """The notebooks of a run, the ones that are judged first: of two with the same cell the first is named."""

    books: tuple[Book, ...] = ()

    @classmethod
    def read(cls, paths: Iterable[str | Path]) -> Notebooks:
        """The notebooks among these paths; what is none is left out."""
        once = {os.path.realpath(p): str(p) for p in reversed([p for p in map(str, paths) if p.endswith(".ipynb")])}
        return cls(tuple(b for b in map(read_book, reversed(once.values())) if b is not None))

    @classmethod
    def beside(cls, files: Iterable[Path | None]) -> Notebooks:
        """The notebooks among local files, then those in their folders: a record names the cells of one beside it."""
        local = [f for f in files if f is not None]
        near = (b for folder in dict.fromkeys(f.parent for f in local) for b in sorted(folder.glob("*.ipynb")))
        named = (f for f in local if f.suffix == ".ipynb")
        books = list(itertools.islice(dict.fromkeys((*named, *near)), MOST_BOOKS))
        runs = executed_copies(books)
        return cls.read(sorted(books, key=lambda b: b in runs))  # a cell is named in the file that a person edits

    def of_code(self, finding: Finding) -> Finding:
        """The finding with every line of code of a notebook given as cell and line."""
        finding = self._of_kernels(finding) if self.books else finding
        for book in self.books:
            if book.starts:
                finding = in_cells(finding, book.path, book.starts, self._names[book.path])
        return finding

    def of_log(self, finding: Finding) -> Finding:
        """A finding of a log; where the log is a notebook's outputs, its line is the one below a cell."""
        finding = self._of_kernels(finding) if self.books else finding
        where = finding.where
        outputs = self._outputs(where.file)
        if outputs is None or where.line is None or where.cell is not None:
            return finding
        cell, line = outputs.place(where.line)
        last, end = outputs.place(where.end_line or where.line)
        return replace(finding, where=replace(where, cell=cell, line=line, end_line=end if last == cell else None,
                                              printed=True))

    def cells(self, path: str, start: int, end: int | None) -> str:
        """Lines of what a notebook printed as cells: "cell 3 output", "cell 3 output, lines 21 to 40"; else ""."""
        outputs = self._outputs(path)
        if outputs is None:
            return ""
        (cell, first), (last, until) = outputs.place(start), outputs.place(end or outputs.lines)
        if cell != last:
            return f"cell {cell} output to cell {last} output"
        whole = first == 1 and (end is None or end >= outputs.lines or outputs.place(end + 1)[0] != cell)
        return f"cell {cell} output" + ("" if whole else f", lines {first} to {until}")

    def _outputs(self, path: str | None) -> Outputs | None:
        real = None if path is None else os.path.realpath(path)
        return next((b.outputs for b in self.books if b.outputs is not None and os.path.realpath(b.path) == real), None)

    def of_run(self, run: Run) -> Run:
        """The run with the frames of its tracebacks in the cells that they belong to."""
        return replace(run, errors=tuple(map(self._error, run.errors))) if self.books and run.errors else run

    def _book(self, path: str) -> Book | None:
        real = os.path.realpath(path)
        return next((b for b in self.books if b.starts and os.path.realpath(b.path) == real), None)

    def joined(self, path: str, cell: int, line: int) -> int | None:
        """The line of the joined code for a line of a cell; None where there is no such cell."""
        book = self._book(path)
        return book.starts[cell - 1] + line - 1 if book is not None and 0 < cell <= len(book.starts) else None

    def shown(self, path: str, line: int, name: str) -> str:
        """`NAME:cell 3:LINE` of a line of a notebook's joined code; "" where the path is none of these notebooks."""
        book = self._book(path)
        return "" if book is None else "{}:cell {}:{}".format(name, *cell_of(line, book.starts))

    def facts(self, text: str, path: str) -> str:
        """A text on programs with lines of joined code as cells; `path`: the file whose lines it calls "line 3"."""
        for book in self.books:
            if book.starts:
                named = re.compile(rf"(?<![\w./-])({re.escape(book.path)}):(\d+)\b")
                text = named.sub(partial(_as_cell, starts=book.starts), text)
        own = next((b for b in self.books if b.starts and b.path == path), None)
        if own is None:
            return text
        return re.sub(r"\bline (\d+)\b", lambda m: "cell {}:{}".format(*cell_of(int(m[1]), own.starts)), text)

    def text(self, text: str) -> str:
        """A text of any kind with the files of a kernel given as cell and line."""
        return _KERNEL_PLACE.sub(self._told, text) if self.books else text

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        """By which names a notebook may be told: its bare name only where no other is called so."""
        bare = [Path(b.path).name for b in self.books]
        return {b.path: (b.path, n) if bare.count(n) == 1 else (b.path,)
                for b, n in zip(self.books, bare, strict=True)}

    def _error(self, error: ErrorEvent) -> ErrorEvent:
        return replace(error, frames=tuple(self._frame(f, error.source) for f in error.frames),
                       cause=None if error.cause is None else self._error(error.cause))

    def _frame(self, frame: Frame, source: str) -> Frame:
        kernel, executed = _KERNEL_PLACE.fullmatch(frame.file), _EXECUTED.fullmatch(frame.file)
        place = self._of_kernel(kernel) if kernel is not None else None
        if executed is not None:
            place = self._of_execution(int(executed[1] or executed[2]), frame, source)
        return frame if place is None else replace(frame, file=place[0], cell=place[1], library=False)

    def _of_kernel(self, match: re.Match[str]) -> tuple[str, int] | None:
        number = int(match["hash"])
        return next(((b.path, b.numbers[number]) for b in self.books if number in b.numbers), None)

    def _of_execution(self, count: int, frame: Frame, source: str) -> tuple[str, int] | None:
        """The cell of an execution: of the notebook whose output was read, else the one that holds the quoted line."""
        own = [b for b in self.books if b.path == source]
        found = {(b.path, b.counts[count]) for b in own if count in b.counts}
        found = found or {(b.path, n) for b in own or self.books for n, cell in enumerate(b.sources, 1)
                          if frame.code.strip() and _line(cell, frame.line) == frame.code.strip()}
        return found.pop() if len(found) == 1 else None

    def _told(self, match: re.Match[str]) -> str:
        place = self._of_kernel(match)
        if place is None:
            return match[0]
        return f"{place[0]}:cell {place[1]}" + (f":{match['line']}" if match["line"] else "")

    def _of_kernels(self, finding: Finding) -> Finding:
        where = finding.where
        match = _KERNEL_PLACE.fullmatch(where.file) if where.file else None
        place = self._of_kernel(match) if match is not None else None
        if place is not None:
            where = replace(where, file=place[0], cell=place[1])
        measured = {k: self._value(v) for k, v in finding.measured.items()}
        return replace(finding, statement=self.text(finding.statement), measured=measured, where=where)

    def _value(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        return self.text(value) if isinstance(value, str) else value


NO_NOTEBOOKS = Notebooks()


def _as_cell(match: re.Match[str], starts: tuple[int, ...]) -> str:
    return "{}:cell {}:{}".format(match[1], *cell_of(int(match[2]), starts))


def _line(source: str, number: int) -> str:
    lines = source.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
