"""Which line of a program writes a file and which reads it: where a fault of a data file is mended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.on_data.named_paths import files_named


@dataclass(frozen=True)
class NamedLine:
    """A line of code that names a file. `path`: the file; `line`: 1-based, of a notebook in its joined code."""

    path: Path
    code: str
    line: int
    written: bool


def named_lines(code: Sequence[Path], root: Path) -> tuple[NamedLine, ...]:
    """The lines that name files below `root`, in the order in which they are written."""
    return tuple(NamedLine(found.resolve(), str(file), line, written)
                 for written in (True, False) for found, file, line in files_named(code, root, written))


def maker_of(path: Path, lines: Iterable[NamedLine]) -> NamedLine | None:
    """The line that a fault of this file is about: the one that writes it, else the first that reads it."""
    own = [n for n in lines if n.path == path.resolve()]
    return next((n for n in own if n.written), own[0] if own else None)
