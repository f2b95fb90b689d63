"""What one protected run may do. Made before anything is confined, and handed on as JSON to the stage inside."""

from __future__ import annotations

from typing import Any, NamedTuple

UNPROTECTED = 75
"""Exit code: nothing was run, because it could not be protected."""


class CannotProtect(Exception):
    """This system cannot hold the command, or a folder is not what it should be: nothing is run."""


class Plan(NamedTuple):
    """The folders of one run; all paths are real paths."""

    workspace: str
    """The project: it stays as it is, unless `open_workspace`."""
    full: tuple[str, ...]
    """Folders of the runner's own: everything may be made there, links and sockets too."""
    shared: tuple[str, ...]
    """Folders that the person and the agent's own tools write to as well: files and folders, never a link."""
    notes: tuple[str, ...] = ()
    """What this machine cannot enforce; said before the run."""
    open_workspace: bool = False
    """The workspace itself may be written: a copy, or a run that a person agreed to."""
    hide_keys: bool = False
    """Keep folders with keys out of sight, where there is a mount namespace."""
    tmp: str = ""
    """The private folder for temporary files, as the command sees it."""
    cache: str = ""
    """The private folder for caches."""
    copy: str = ""
    """The folder of the copy that the command runs in, or nothing."""
    manifest: int = -1
    """The descriptor of the copy's manifest, opened before anything was confined."""
    closed: tuple[str, ...] = ()
    """Places within a folder that may be written which are mounted there to be read."""

    def writable(self, location: str) -> bool:
        """True for a real path that the command may change."""
        opened = (*self.full, *self.shared, *((self.workspace,) if self.open_workspace else ()))
        closed = (*self.closed, *(() if self.open_workspace else (self.workspace,)))
        innermost = max((r for r in (*opened, *closed) if within(location, r)), key=len, default="")
        return innermost in opened and innermost not in closed

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return self._asdict()


def plan_from(given: dict[str, Any]) -> Plan:
    """The plan that `to_json` made."""
    return Plan(**{**given, **{name: tuple(given[name]) for name in ("full", "shared", "notes", "closed")}})


def within(path: str, folder: str) -> bool:
    """True where the path is the folder or lies in it; both are real paths."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
