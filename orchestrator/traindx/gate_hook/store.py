"""Where the gate's state lives: in the user's state folder, outside of every workspace.

No call that the gate allows can write there: file tools reach the workspace only, and commands run in the protected
runner. An empty `open/` is what the launcher looks at before it starts Python at all.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from zlib import crc32

from traindx.gate_hook.state import State, StateDamaged, state_from


def state_folder(environment: Mapping[str, str]) -> Path:
    """`$TRAINDX_GATE_STATE`, else `traindx/gate` in the state folder of XDG. The launcher computes the same."""
    named = environment.get("TRAINDX_GATE_STATE")
    if named:
        return Path(named)
    base = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '')}/.local/state"
    return Path(base) / "traindx" / "gate"


def name_of(workspace: str) -> str:
    """The file name that stands for a workspace."""
    tail = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.path.basename(workspace))[:40]
    return f"{tail}-{crc32(os.fsencode(workspace)):08x}-{len(workspace)}"


def mark_of(content: bytes) -> str:
    """A short mark of a file's content: whether somebody else changed it since."""
    return f"{len(content)}-{crc32(content):08x}"


class _Lock:
    """Held in a `with` block. (contextlib would cost a call of the hook more than this class.)"""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = (folder / "lock").open("w")

    def __enter__(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows: a change that is lost closes the gate, it never opens it
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._file.close()


class Store:
    """The gates of all workspaces of one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def workspaces(self) -> list[str]:
        """The workspaces whose gate is open, the longest path first."""
        try:
            marks = list((self.folder / "open").iterdir())
        except FileNotFoundError:
            return []
        return sorted((m.read_text(encoding="utf-8", errors="surrogateescape") for m in marks), key=len, reverse=True)

    def is_open(self, workspace: str) -> bool:
        """True while a debug session is open there."""
        return (self.folder / "open" / name_of(workspace)).exists()

    def heard(self, workspace: str) -> None:
        """Something happened in the workspace just now."""
        os.utime(self.folder / "open" / name_of(workspace))

    def silent_for(self, workspace: str) -> float:
        """Seconds since something happened in the workspace."""
        return time.time() - (self.folder / "open" / name_of(workspace)).stat().st_mtime

    def is_off(self, workspace: str) -> bool:
        """True where a person has switched the gate off."""
        return (self.folder / "off" / name_of(workspace)).exists()

    def switch(self, workspace: str, *, off: bool) -> None:
        """Switch the gate of a workspace off or on again."""
        self._mark("off", workspace, there=off)

    def ended(self, workspace: str, *, there: bool) -> bool:
        """Note that a session ended with its conversation, or forget it; returns whether it was noted."""
        noted = (self.folder / "ended" / name_of(workspace)).exists()
        self._mark("ended", workspace, there=there)
        return noted

    def read(self, workspace: str) -> State | None:
        """The state of a workspace's gate, or None where it never had one. Raises StateDamaged."""
        try:
            text = self._path(workspace).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return None
        try:
            state = state_from(json.loads(text))
        except ValueError as error:
            raise StateDamaged(f"{self._path(workspace)}: {error}") from error
        if state.workspace != workspace:
            raise StateDamaged(f"{self._path(workspace)} is about {state.workspace}, expected {workspace}")
        return state

    def write(self, state: State, *, opened: bool = True) -> None:
        """Keep the state, whole or not at all, and whether its session is open."""
        path = self._path(state.workspace)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(state.to_json()), encoding="utf-8", errors="surrogateescape")
        os.replace(fresh, path)
        self._mark("fix", state.workspace, there=opened and state.phase == "fix")
        self._mark("open", state.workspace, there=opened)

    def locked(self) -> _Lock:
        """One event at a time changes a state: tool calls of subagents run side by side."""
        return _Lock(self.folder)

    def _path(self, workspace: str) -> Path:
        return self.folder / "workspaces" / f"{name_of(workspace)}.json"

    def _mark(self, kind: str, workspace: str, *, there: bool) -> None:
        mark = self.folder / kind / name_of(workspace)
        if there:
            mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            mark.write_text(workspace, encoding="utf-8", errors="surrogateescape")
        else:
            mark.unlink(missing_ok=True)
