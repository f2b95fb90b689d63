"""What a project has written down about itself, and how a session adds to it.

Read: `.agents/knowledge/constraints.md`, `fix_patterns.md`, `failure_modes/*.toml` and `MEMORY.md`, each bounded. The
texts are data that an investigator may quote; nothing in them changes what a session is allowed to do. Written: only
with the user's consent, only by appending, only to these files, and once for each session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from traindx.durable import StateNotWritable, write_durably
from traindx.model import Model
from traindx.workspace import PathRefused, inside

KNOWLEDGE = Path(".agents") / "knowledge"
CONSTRAINTS = (KNOWLEDGE / "constraints.md").as_posix()
FIX_PATTERNS = (KNOWLEDGE / "fix_patterns.md").as_posix()
FAILURE_MODES = (KNOWLEDGE / "failure_modes").as_posix()
MEMORY = "MEMORY.md"

READ_AT_MOST = 64 * 1024
"""Bytes of one file; notes that are longer are cut, and said so."""

MODES_AT_MOST = 200

_NUMBERED = re.compile(r"^\s*(\d+)[.)]\s", re.MULTILINE)


@dataclass(frozen=True)
class Knowledge:
    """The project's own notes, as text."""

    constraints: str = ""
    fix_patterns: str = ""
    memory: str = ""
    failure_modes: tuple[tuple[str, str], ...] = ()
    """(file name, TOML text) of the project's own failure modes."""
    skipped: tuple[str, ...] = ()
    """Files that were not read or not whole, and why."""


class Addition(Model):
    """Text that would be appended to one of the project's notes."""

    path: str
    text: str


def read_knowledge(workspace: Path) -> Knowledge:
    """The notes of a workspace; what is missing is empty, what leads out of the workspace is skipped."""
    skipped: list[str] = []
    folder = workspace / FAILURE_MODES
    names = sorted(p.name for p in folder.glob("*.toml"))[:MODES_AT_MOST] if folder.is_dir() else []
    modes = [(n, _read(workspace, f"{FAILURE_MODES}/{n}", skipped)) for n in names]
    return Knowledge(
        constraints=_read(workspace, CONSTRAINTS, skipped),
        fix_patterns=_read(workspace, FIX_PATTERNS, skipped),
        memory=_read(workspace, MEMORY, skipped),
        failure_modes=tuple((n, t) for n, t in modes if t),
        skipped=tuple(skipped),
    )


def _read(workspace: Path, path: str, skipped: list[str]) -> str:
    try:
        real = inside(workspace, path)
        if not real.is_file():
            return ""
        with real.open("rb") as file:
            content = file.read(READ_AT_MOST + 1)
    except (PathRefused, OSError) as error:
        skipped.append(f"{path}: {error}")
        return ""
    if len(content) > READ_AT_MOST:
        skipped.append(f"{path}: only the first {READ_AT_MOST // 1024} KiB were read")
    return content[:READ_AT_MOST].decode("utf-8", "replace")


def next_number(constraints: str) -> int:
    """The number that a new entry of a numbered constraints file takes."""
    return max((int(n) for n in _NUMBERED.findall(constraints)), default=0) + 1


def add_knowledge(workspace: Path, session: str, additions: Iterable[Addition]) -> tuple[str, ...]:
    """Append to the project's notes, each file once for this session; returns the paths that were changed.

    Raises PathRefused for any other file, StateNotWritable where the disk refuses.
    """
    changed = []
    mark = f"<!-- traindx session {session} -->"
    for addition in additions:
        if addition.path not in (CONSTRAINTS, FIX_PATTERNS, MEMORY):
            raise PathRefused(f"knowledge is added to {CONSTRAINTS}, {FIX_PATTERNS} or {MEMORY}, not {addition.path}")
        real = inside(workspace, addition.path)
        try:
            before = real.read_bytes() if real.exists() else b""
            if mark.encode() in before:
                continue
            real.parent.mkdir(parents=True, exist_ok=True)
            gap = b"" if not before else b"\n" if before.endswith(b"\n") else b"\n\n"
            text = f"{mark}\n{addition.text.strip()}\n".encode()
            write_durably(real, before + gap + text, mode=real.stat().st_mode & 0o777 if before else 0o644)
        except OSError as error:
            raise StateNotWritable(real, error) from error
        changed.append(addition.path)
    return tuple(changed)
