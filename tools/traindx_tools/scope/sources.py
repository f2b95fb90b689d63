"""From what was read to what the scope is found among: the code, the lines of the logs, recorded processes."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path

from traindx_tools.live.reading import LiveRun
from traindx_tools.on_logs.artifacts import Source, is_binary
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.reading import Reading
from traindx_tools.on_logs.run import Run
from traindx_tools.scope.find import Found, find_scope
from traindx_tools.scope.model import Asked, LogLines, Scope

HEAD, TAIL, BETWEEN = 3_000, 1_500, 1_000
"""Lines of a log that are looked at: its first, its last, and those between them that name a Python file."""
_NO_LOG = frozenset({"python", "notebook", "shell", "markdown", "html", "patch", "yaml", "toml", "data_table",
                     "data_records", "empty", "binary", "cuda_memory_snapshot", "tensorboard", "weights"})
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


def outside(scope: Scope) -> frozenset[str]:
    """The real paths of the files that lie beside the run."""
    return frozenset(os.path.realpath(p) for p in (*scope.beside, *scope.configs_beside, *scope.logs_beside))


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
            lines = iter(lines_of(source))
            head = list(itertools.islice(lines, HEAD))
            tail: deque[tuple[int, str]] = deque(maxlen=TAIL)
            between: list[tuple[int, str]] = []
            for number, text in lines:
                if len(tail) == TAIL and ".py" in tail[0][1] and len(between) < BETWEEN:
                    between.append(tail[0])
                tail.append((number, text))
            return (*head, *between, *tail)
    return ()
