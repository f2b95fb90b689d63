"""The protected runner for commands that a person agreed to: a verification, a run in a copy.

The same runner as behind the gate (`runner/`), with the workspace itself open: everything can be read; written can be
the workspace, a private folder for temporary files, private caches, devices. The network stays as it is. Bubblewrap
adds that sessions in the workspace and folders with keys are out of reach. Where neither Landlock nor bubblewrap is
there the command runs without it, and that is said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.runner import bubblewrap, landlock

START = Path(__file__).with_name("runner") / "start.py"
_REFUSALS = (b"Read-only file system", b"Permission denied")
"""What bubblewrap and Landlock answer."""


@dataclass(frozen=True)
class Sandbox:
    """How commands are wrapped. Without a program they are left as they are, and `why` says why."""

    program: str | None
    """What enforces it: "bubblewrap" or "Landlock"."""
    why: str = ""

    def around(self, command: Sequence[str], workspace: Path, writable: Sequence[Path] = ()) -> list[str]:
        """The command as it is started, in the workspace. `writable`: further folders."""
        if self.program is None:
            return list(command)
        words = [sys.executable, "-I", "-S", str(START), "--open-workspace", "--hide-keys", "--workspace",
                 str(workspace.resolve())]
        for path in dict.fromkeys(p.resolve() for p in writable if p.is_dir()):
            words += ["--writable", str(path)]
        return [*words, "--", *command]

    def reading(self, command: Sequence[str], workspace: Path) -> list[str]:
        """The command as it is started where it writes nothing but temporary files and private caches."""
        if self.program is None:
            return list(command)
        return [sys.executable, "-I", "-S", str(START), "--read-only", "--hide-keys", "--workspace",
                str(workspace.resolve()), "--", *command]

    @property
    def warning(self) -> str:
        """For a person, before a command runs that nothing holds back; "" where a sandbox does."""
        return "" if self.program is not None else (
            f"there is no sandbox ({self.why}): the command runs in a copy, and can write wherever you can")

    @property
    def said(self) -> str:
        """For a person: what the command could do."""
        if self.program is None:
            return f"run without a sandbox ({self.why}): the command could write wherever you can"
        sessions = "" if self.program == "bubblewrap" else " with the sessions in it"
        return (f"run in a {self.program} sandbox: only the workspace{sessions}, temporary folders and private caches "
                "could be written")


def find_sandbox(wanted: bool = True) -> Sandbox:
    """The sandbox of this machine, tried out."""
    if not wanted:
        return Sandbox(None, "as you wished")
    if not sys.platform.startswith("linux"):
        return Sandbox(None, f"{sys.platform} has neither bubblewrap nor Landlock")
    program = bubblewrap.find(os.environ, os.sep + "nowhere")
    if program is not None and bubblewrap.works(program):
        return Sandbox("bubblewrap")
    if landlock.version():
        return Sandbox("Landlock")
    lacks = "is not installed" if program is None else "is not permitted here"
    return Sandbox(None, f"this kernel has no Landlock, and bubblewrap {lacks}")


def refused_a_write(output: Path) -> bool:
    """True where a command's output complains of a file that cannot be written; its end is looked at."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - 2**20))
            said = file.read()
            return any(refusal in said for refusal in _REFUSALS)
    except OSError:
        return False
