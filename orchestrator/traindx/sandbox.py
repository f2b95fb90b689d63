"""The bubblewrap sandbox for commands that a person agreed to: a verification, a run in a copy.

Inside, everything can be read but folders with keys, and only what the command is for can be written: the workspace
(without the sessions in it), folders for temporary files, caches of libraries, devices. The network stays as it is.
Where bubblewrap is missing or not permitted the command runs without it, and that is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.scratch import SCRATCH

PROGRAM = "bwrap"
SECONDS = 10.0
"""For the trial; a sandbox that takes longer to begin is none."""

TEMPORARY = ("/tmp", "/var/tmp")
CACHES = ("~/.cache", "~/.nv", "~/.triton", "~/.keras", "~/.cupy")
CACHE_VARIABLES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TRANSFORMERS_CACHE",
                   "HF_DATASETS_CACHE", "TMPDIR")
"""Libraries lock and fill their caches also when they only read."""

HIDDEN = ("~/.ssh", "~/.aws", "~/.gnupg", "~/.kube", "~/.azure", "~/.docker", "~/.config/gcloud", "~/.netrc",
          "~/.git-credentials", "~/.pypirc", "~/.config/gh")
"""Keys that no training run needs."""

_READ_ONLY = b"Read-only file system"


@dataclass(frozen=True)
class Sandbox:
    """How commands are wrapped. Without a program they are left as they are, and `why` says why."""

    program: str | None
    why: str = ""

    def around(self, command: Sequence[str], workspace: Path, environment: Mapping[str, str],
               writable: Sequence[Path] = ()) -> list[str]:
        """The command as it is started, in the workspace."""
        if self.program is None:
            return list(command)
        root = workspace.resolve()
        named = [*map(os.path.expanduser, CACHES), *(environment.get(v, "") for v in CACHE_VARIABLES)]
        folders = [*TEMPORARY, *(n for n in named if n), str(root), *(str(p.resolve()) for p in writable)]
        words = [self.program, "--die-with-parent", "--unshare-pid", "--ro-bind", "/", "/", "--dev-bind", "/dev",
                 "/dev", "--proc", "/proc"]
        for folder in dict.fromkeys(f for f in folders if os.path.isdir(f)):
            words += ["--bind", folder, folder]
        sessions = root / SCRATCH
        words += ["--ro-bind-try", str(sessions), str(sessions)]
        for folder in (str(p.resolve()) for p in writable if p.resolve().is_relative_to(sessions)):
            words += ["--bind", folder, folder]  # bound again, over the sessions that are read-only
        for path in map(os.path.expanduser, HIDDEN):
            words += ["--tmpfs", path] if os.path.isdir(path) else []
            words += ["--ro-bind", "/dev/null", path] if os.path.isfile(path) else []
        return [*words, "--chdir", str(root), "--", *command]

    @property
    def said(self) -> str:
        """For a person: what the command could do."""
        if self.program is None:
            return f"run without a sandbox ({self.why}): the command could write wherever you can"
        return "run in a bubblewrap sandbox: only the workspace, temporary folders and caches could be written"


def find_sandbox(wanted: bool = True) -> Sandbox:
    """The sandbox of this machine, tried out."""
    if not wanted:
        return Sandbox(None, "as you wished")
    program = shutil.which(PROGRAM)
    if program is None:
        return Sandbox(None, "bubblewrap is not installed")
    trial = Sandbox(program).around(["true"], Path("/"), {})
    try:
        done = subprocess.run(trial, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Sandbox(None, f"bubblewrap does not start: {type(error).__name__}")
    if done.returncode == 0:
        return Sandbox(program)
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:200]
    return Sandbox(None, f"bubblewrap is not permitted here: {said or f'exit code {done.returncode}'}")


def refused_a_write(output: Path) -> bool:
    """True where a command's output complains of a file system that cannot be written; its end is looked at."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - 2**20))
            return _READ_ONLY in file.read()
    except OSError:
        return False
