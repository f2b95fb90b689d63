"""Which data files a program opens to read, and from which of its lines: by Python's own audit events.

Files that are opened by `open`, and so by numpy (`load`, `memmap`), torch, json, csv, pickle, tarfile, zipfile and the
text readers of pandas, are seen. What a library opens in C (h5py, pyarrow, safetensors) or a worker process of a
DataLoader opens is not. An audit hook cannot be taken out again: it looks at nothing but events called "open".
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENDINGS = frozenset((
    ".npy", ".npz", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt", ".bin", ".dat", ".raw", ".mmap", ".pt",
    ".pth", ".ckpt", ".pkl", ".pickle", ".parquet", ".arrow", ".feather", ".h5", ".hdf5", ".tar", ".zip", ".gz",
    ".tfrecord", ".idx", ".safetensors", ".msgpack"))
"""How data files, caches and checkpoints end."""
SETTINGS = frozenset((".yaml", ".yml", ".toml", ".json"))
"""How configuration files end."""
MOST = 2_000
"""Files of one process that are noted."""
OURS = str(Path(__file__).resolve().parents[1])
_INSTALLED = ("site-packages", "dist-packages", OURS, sysconfig.get_paths()["stdlib"])
_open: list[FilesRead] = []


@dataclass(frozen=True)
class FileRead:
    """One file, and the line of the program that opened it first; 0 where none of its lines did."""

    path: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "a library"


class FilesRead:
    """The files of this process, in the order in which they were first opened; and those that it writes."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, int]] = {}
        self._written: set[str] = set()
        self._settings: dict[str, None] = {}
        self._busy = False

    @property
    def settings(self) -> list[str]:
        """The configuration files that the program's own code read, and that this process did not write."""
        return [p for p in self._settings if p not in self._written]

    def settings_anew(self) -> None:
        """Forgets the configuration files: those of a session before say nothing of the one that begins."""
        self._settings.clear()

    def told(self) -> list[dict[str, Any]]:
        """Path, file and line of each file that was read and not written by the same process."""
        return [{"path": p, "file": f, "line": n} for p, (f, n) in self._read.items() if p not in self._written]

    def opened(self, path: object, mode: object, flags: object) -> None:
        """A file is opened."""
        if self._busy or not isinstance(path, (str, bytes, os.PathLike)):
            return
        self._busy = True
        try:
            name = os.fsdecode(path)
            ending = os.path.splitext(name)[1].lower()
            if ending in SETTINGS and len(self._settings) < MOST:
                self._note_settings(os.path.abspath(name), mode, flags)
            if ending in ENDINGS and len(self._read) < MOST:
                self._note(os.path.abspath(name), mode, flags)
        except Exception:  # noqa: BLE001 - whatever goes wrong here must not be the program's
            return
        finally:
            self._busy = False

    def _note_settings(self, path: str, mode: object, flags: object) -> None:
        if _writes(mode, flags):
            if path not in self._settings:
                self._written.add(path)
        elif not any(part in path for part in _INSTALLED) and _line(asked=True)[0]:
            self._settings[path] = None

    def _note(self, path: str, mode: object, flags: object) -> None:
        if _writes(mode, flags):
            if path not in self._read:
                self._written.add(path)
        elif path not in self._read and path not in sys.path and not any(part in path for part in _INSTALLED):
            self._read[path] = _line()


def _writes(mode: object, flags: object) -> bool:
    return any(c in mode for c in "wax") if isinstance(mode, str) else (
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) != 0)


def _line(asked: bool = False) -> tuple[str, int]:
    """The innermost line that belongs to no library; `asked`: none where these instruments read it."""
    frame = sys._getframe(3)
    while frame is not None:
        name = frame.f_code.co_filename
        if asked and name.startswith(OURS) and name != __file__:
            return "", 0
        if not name.startswith("<") and not any(part in name for part in _INSTALLED):
            return os.path.abspath(name), frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


def watch_files() -> FilesRead:
    """Begins to note the files of this process; a second call returns the same notes."""
    if not _open:
        made = FilesRead()
        _open.append(made)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "open" and len(args) == 3:
                made.opened(*args)

        sys.addaudithook(hook)
    return _open[0]


def read_from(records: list[Any]) -> tuple[FileRead, ...]:
    """What `told` gave, as it stands in a record; what is no such thing is left out."""
    out = []
    for r in records[:MOST]:
        if isinstance(r, Mapping) and isinstance(r.get("path"), str) and r["path"]:
            line = r.get("line")
            out.append(FileRead(r["path"], str(r.get("file") or ""), line if isinstance(line, int) else 0))
    return tuple(out)
