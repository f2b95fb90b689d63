"""From what was read to what the scope is found among: the code, the lines of the logs, recorded processes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from traindx_tools.live.reading import LiveRun
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.line_blocks import Block, each_block
from traindx_tools.on_logs.reading import Reading
from traindx_tools.on_logs.run import Ints, Run
from traindx_tools.scope.find import Found, find_scope
from traindx_tools.scope.model import Asked, LogLines, Scope

HEAD, TAIL, BETWEEN = 3_000, 1_500, 1_000
"""Lines of a log that are looked at: its first, its last, and those between them that name a Python file."""
_NO_LOG = frozenset({"python", "notebook", "shell", "markdown", "html", "patch", "yaml", "toml", "data_table",
                     "data_records", "empty", "binary", "cuda_memory_snapshot", "tensorboard", "weights",
                     "traindx summary"})
_CONFIG = (".yaml", ".yml", ".toml")
_SHELL = (".sh", ".slurm", ".sbatch", ".bash")


def scope_of(reading: Reading, code: Sequence[Path], paths: Sequence[str | Path], asked: Asked, live: LiveRun,
             root: Path) -> Scope:
    """The scope of what was read. `code`: the Python files among which it lies. Raises BadUsage for a bad `--entry`."""
    files = asked.named
    if files is None:
        files = tuple(p for p in map(Path, paths) if p.suffix in (".py", ".ipynb") and p.is_file())
    local = [s.local for s in reading.found.sources if s.local is not None]
    return find_scope(asked, Found(
        tuple(code), files, _logs(reading, {os.path.realpath(p) for p in paths}),
        () if files else live.scripts(root), tuple(p for p in local if p.suffix.lower() in _CONFIG),
        tuple(p for p in local if p.suffix.lower() in _SHELL), root))


def outside(scope: Scope, older: Iterable[Path] = ()) -> frozenset[str]:
    """The real paths of the files that lie beside the run, and of logs that are older than it."""
    return frozenset(os.path.realpath(p) for p in (*scope.beside, *scope.configs_beside, *scope.logs_beside, *older))


def _logs(reading: Reading, named: Container[str]) -> tuple[LogLines, ...]:
    pairs = zip(reading.sources, reading.parts, strict=True)
    return tuple(LogLines(s.name, lines, _written(s), s.local is None or os.path.realpath(s.local) in named)
                 for s, part in pairs if _is_log(part) and (lines := _lines(s)))


def _written(source: Source) -> int:
    with suppress(OSError):
        return int(source.local.stat().st_mtime) if source.local is not None else 0
    return 0


def _is_log(part: Run) -> bool:
    told = part.artifacts[0] if part.artifacts else None
    return told is not None and told.format not in _NO_LOG and not told.note.startswith(("refused", "not read"))


def _lines(source: Source) -> tuple[tuple[int, str], ...]:
    with suppress(OSError):
        if not is_binary(source.head):
            ends = _Ends()
            each_block(source, ends.block, ends.line)
            return ends.lines()
    return ()


class _Ends:
    """The first and the last lines of a text, and the first of those between that name a Python file."""

    def __init__(self) -> None:
        self._head: list[tuple[int, str]] = []
        self._named: list[tuple[int, str]] = []
        self._tail: deque[tuple[int, str]] = deque(maxlen=TAIL)
        self._late: list[tuple[Block, Ints]] = []
        """Blocks behind these, whose last lines are decoded when nothing follows."""

    def line(self, number: int, text: str) -> None:
        """Takes one line."""
        if len(self._head) < HEAD:
            self._head.append((number, text))
            return
        if ".py" in text:
            self._name(number, text)
        self._decode()
        self._tail.append((number, text))

    def block(self, block: Block) -> None:
        """Takes a block of lines: of one in the middle only those at its end, and those that name a file."""
        filled = np.flatnonzero(block.ends > block.starts)
        at = HEAD - len(self._head)
        for place in filled[:at].tolist():
            self.line(block.first + place, block.text(place))
        rest = filled[at:]
        if not len(rest):
            return
        begin = int(block.starts[rest[0]])
        while len(self._named) < BETWEEN + TAIL and (found := block.data.find(b".py", begin)) >= 0:
            place = int(np.searchsorted(block.ends, found))
            self._name(block.first + place, block.text(place))
            begin = int(block.ends[place])
        self._late.append((block, rest[-TAIL:]))
        while sum(len(places) for _, places in self._late[1:]) >= TAIL:
            del self._late[0]

    def _decode(self) -> None:
        for block, places in self._late:
            self._tail.extend((block.first + p, block.text(p)) for p in places.tolist())
        self._late.clear()

    def _name(self, number: int, text: str) -> None:
        if len(self._named) < BETWEEN + TAIL:
            self._named.append((number, text))

    def lines(self) -> tuple[tuple[int, str], ...]:
        """What was kept, in the order of the text."""
        self._decode()
        last = self._tail[0][0] if self._tail else 0
        between = [n for n in self._named if n[0] < last][:BETWEEN]
        return (*self._head, *between, *self._tail)
