"""The folders of this user that sessions were begun in, so that a session is found by its id from anywhere.

A list of paths in the user's state folder and nothing else: what a session is stands in its own folder, and a folder
that is named here must bear a session's mark like any other. Where the list cannot be written or read, sessions are
found from their own folder as ever.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from traindx.durable import StateNotWritable, write_state

SWITCH = "TRAINDX_SESSIONS"
"""Names the file in place of `traindx/sessions.jsonl` in the state folder of XDG."""

MOST = 1000
"""Lines from which those are dropped whose folders are gone, or failing that the oldest."""

LARGEST = 4 * 2**20
"""Bytes of the list that are read."""


def list_file(environment: Mapping[str, str]) -> Path | None:
    """Where the list lies; None where this process has no home. A service without HOME has that of its user."""
    if environment.get(SWITCH):
        return Path(environment[SWITCH])
    home = environment.get("HOME") or _home_of_the_user()
    base = environment.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else "")
    return Path(base) / "traindx" / "sessions.jsonl" if base else None


def _home_of_the_user() -> str:
    with contextlib.suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    return ""


def remember(workspace: Path) -> None:
    """Adds a folder to the list, once."""
    path, told = list_file(os.environ), str(workspace.absolute())
    if path is None:
        return
    with contextlib.suppress(OSError, UnicodeError, StateNotWritable):
        listed = _read(path)
        if told in listed:
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if len(listed) < MOST:
            with path.open("ab") as file:  # appended in one piece: two that begin at once both stand there
                file.write(_line(told))
            return
        kept = [f for f in listed if os.path.isdir(f)][-(MOST - 1):]
        write_state(path, b"".join(_line(f) for f in [*kept, told]))


def known_folders() -> tuple[Path, ...]:
    """The folders that are still there, the oldest first."""
    path = list_file(os.environ)
    if path is None:
        return ()
    with contextlib.suppress(OSError):
        return tuple(Path(f) for f in _read(path) if os.path.isdir(f))
    return ()


def _line(folder: str) -> bytes:
    return json.dumps(folder).encode() + b"\n"


def _read(path: Path) -> list[str]:
    """The paths of the list without repeats; lines that are none are passed over."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        rows = file.read(LARGEST).split(b"\n")
    found: dict[str, None] = {}
    for row in rows:
        with contextlib.suppress(ValueError, RecursionError):
            folder = json.loads(row)
            if isinstance(folder, str) and os.path.isabs(folder) and "\0" not in folder:
                found[folder] = None
    return list(found)
