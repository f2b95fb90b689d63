"""The training command as `traindx run` recorded it: what is offered as the command that verifies a fix.

The record is a file like any other, and may be anybody's: only a command that starts a script of this workspace, with
a program that starts trainings, is offered; and it is offered to be typed, never run by itself.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traindx_tools.live.folders import PARENT, PROBES
from traindx_tools.live.reading import RUN_FILE

MOST_BYTES = 64 * 2**10
MOST_RUNS = 200
MOST_WORDS = 60

_PROGRAM = re.compile(r"python[\d.]*|torchrun|accelerate|deepspeed|jupyter|ipython|uv|poetry|mpirun|srun")
_PLAIN = re.compile(r"[\w./=:,@%+~\[\]{}'\" -]+")
_CODE = ("-c", "-e", "--command")
"""Options behind which a program stands in the command itself."""


def recorded_command(root: Path, paths: Iterable[str | Path] = ()) -> str | None:
    """The command of the last run that started in this folder, as it is typed there; None where there is none.

    Looked for among the paths that were given (run folders, or folders of them) and in `traindx-run` of the root and of
    its probes.
    """
    folders = [Path(p) for p in paths if str(p) != "-" and "://" not in str(p)]
    of_root = (root / PARENT, root / PROBES / PARENT)
    records = [r for r in map(_record, _files([*folders, *of_root])) if r is not None]
    for record in sorted(records, key=_started, reverse=True):
        command = _offered(record, root)
        if command is not None:
            return command
    return None


def _files(folders: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        if folder.name == RUN_FILE:
            found.append(folder)
        elif folder.is_dir():
            found += [folder / RUN_FILE, *sorted(folder.glob(f"*/{RUN_FILE}"))[-MOST_RUNS:]]
    return [f for f in dict.fromkeys(found) if f.is_file()]


def _record(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            read = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) and read.get("traindx") == "live-run" else None


def _started(record: dict[str, Any]) -> float:
    started = record.get("started")
    return float(started) if isinstance(started, (int, float)) else 0.0


def _offered(record: dict[str, Any], root: Path) -> str | None:
    words, cwd = record.get("command"), record.get("cwd")
    if not isinstance(words, list) or not isinstance(cwd, str) or Path(cwd).resolve() != root.resolve():
        return None
    if not 1 < len(words) <= MOST_WORDS or not all(isinstance(w, str) and _PLAIN.fullmatch(w) for w in words):
        return None
    if not _PROGRAM.fullmatch(Path(words[0]).name) or any(w in _CODE for w in words):
        return None
    starts = "-m" in words[:3] or any(w.endswith(".py") and (root / w).is_file() for w in words[1:])
    return shlex.join(words) if starts else None
