"""Drives a session of the scripted project in a process of its own, which is killed at a moment that a test names.

    python killed_at.py WORKSPACE MOMENT COMMAND

`MOMENT`: "planned" (the fix is written down, no file is changed), "written" (the files are changed, nothing says so),
"applied" (it is recorded), "judged" (the command ended, nothing was judged), or "never": the caller kills it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOMENTS = {"planned": ("traindx.patching", "put", "before"), "written": ("traindx.patching", "put", "after"),
           "applied": ("traindx.steps.verifying", "baseline", "before"),
           "judged": ("traindx.steps.verifying", "judge", "before")}


def killed(workspace: Path, moment: str, command: str, *, when: Path | None = None) -> str:
    """The folder of the session that was killed there; `when`: a file whose coming is the moment."""
    script = [sys.executable, __file__, str(workspace), moment, command]
    process = subprocess.Popen(script, stderr=subprocess.PIPE)
    if when is not None:
        until = time.monotonic() + 60
        while not when.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == -signal.SIGKILL, said
    return str(next((workspace / "scratch/debug").glob("*/journal.jsonl")).parent)


def _dies(module: str, name: str, order: str) -> None:
    """SIGKILL this process before or after a function is called for the first time."""
    import importlib

    home = importlib.import_module(module)
    real: Callable[..., Any] = getattr(home, name)

    def call(*given: Any, **named: Any) -> Any:
        if order == "after":
            real(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(home, name, call)


def main(workspace: Path, moment: str, command: str) -> None:
    """Drive the session until it dies."""
    from scripted import Scripted, approve, diagnosis, examined

    from traindx.session import run_debug_session_sync

    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    if moment != "never":
        _dies(*MOMENTS[moment])
    run_debug_session_sync("x", workspace, verify={"command": command, "writable": [str(workspace.parent)]},
                           approve=approve(), allow_run=True, investigator=Scripted([diagnosis()]), examine=examined,
                           report=False, hear=lambda notice: None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
