"""Notebooks that are runs of another notebook: nbconvert and papermill write what they executed as a file of its own.

Such a file holds the same code, and what it printed. Judged beside its source it would say every fault twice, and in
its place it would name lines that nobody edits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.notebooks.cells import code_cells, source_of
from traindx_tools.notebooks.outputs import MOST_BYTES


@dataclass(frozen=True)
class _Held:
    """What a notebook holds: its code and the signs of having been written by a run."""

    path: Path
    code: tuple[str, ...]
    by_papermill: bool
    printed: bool

    @property
    def order(self) -> tuple[bool, bool, int, str]:
        """The source comes before its runs: written by a person, without outputs, the shorter name."""
        return self.by_papermill, self.printed, len(self.path.name), str(self.path)


def executed_copies(code: Iterable[Path], named: Iterable[Path] = ()) -> Mapping[Path, Path]:
    """Each notebook that is a run of another one among `code`, with that one. Those that a person named stay."""
    books = [p for p in code if p.suffix == ".ipynb"]
    if len(books) < 2:
        return {}
    kept = {p.resolve() for p in named}
    alike: dict[tuple[str, ...], list[_Held]] = {}
    for held in map(_held, books):
        if held is not None and any(held.code):
            alike.setdefault(held.code, []).append(held)
    found = {}
    for several in alike.values():
        first, *rest = sorted(several, key=lambda h: (h.path.resolve() not in kept, h.order))
        found.update({h.path: first.path for h in rest if h.path.resolve() not in kept})
    return found


def _held(path: Path) -> _Held | None:
    if not path.is_file():  # a pipe of that name would be waited for
        return None
    try:
        with path.open("rb") as stream:
            read = json.loads(stream.read(MOST_BYTES).decode("utf-8-sig", errors="replace"))
        cells = code_cells(read)
    except (OSError, ValueError, RecursionError):
        return None
    if cells is None:
        return None
    own = [c for c in cells if "injected-parameters" not in _tags(c)]
    code = tuple(text for c in own if (text := "\n".join(s.rstrip() for s in source_of(c).strip().splitlines())))
    about = read.get("metadata") if isinstance(read, dict) else None
    return _Held(path, code, isinstance(about, dict) and "papermill" in about, any(c.get("outputs") for c in cells))


def _tags(cell: Mapping[str, object]) -> tuple[str, ...]:
    about = cell.get("metadata")
    tags = about.get("tags") if isinstance(about, dict) else None
    return tuple(str(t) for t in tags) if isinstance(tags, list) else ()
