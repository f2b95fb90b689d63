"""Drives a session of the scripted project in a process of its own, which is killed at a moment that a test names.

The processes are forked from one that has imported what they need: importing took longer than the session.

`moment`: "planned" (the fix is written down, no file is changed), "written" (the files are changed, nothing says so),
"applied" (it is recorded), "judged" (the command ended, nothing was judged), or "never": the caller kills it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOMENTS = {"planned": ("traindx.patching", "put", "before"), "written": ("traindx.patching", "put", "after"),
           "applied": ("traindx.steps.verifying", "baseline", "before"),
           "judged": ("traindx.steps.verifying", "judge", "before")}


def killed(workspace: Path, moment: str, command: str, *, when: Path | None = None) -> str:
    """The folder of the session that was killed there; `when`: a file whose coming is the moment."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["traindx.session", "traindx.steps.verifying"])
    process = server.Process(target=drive, args=(workspace, moment, command))
    process.start()
    if when is not None:
        until = time.monotonic() + 60
        while not when.exists() and process.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGKILL
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


def drive(workspace: Path, moment: str, command: str) -> None:
    """Drive the session until it dies."""
    from scripted import Scripted, approve, diagnosis, examined

    from traindx.session import run_debug_session_sync

    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    if moment != "never":
        _dies(*MOMENTS[moment])
    run_debug_session_sync("x", workspace, verify={"command": command, "writable": [str(workspace.parent)]},
                           approve=approve(), allow_run=True, investigator=Scripted([diagnosis()]), examine=examined,
                           report=False, hear=lambda notice: None)
