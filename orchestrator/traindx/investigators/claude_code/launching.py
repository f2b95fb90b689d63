"""How the CLI is started: so that it ends with the session's process, also when that is killed.

The CLI finishes the request that it is at before it sees that nobody listens any more; until then it would spend.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path

from traindx.investigators.claude_code.sdk import sdk

NAME = "cli"


def bundled() -> str | None:
    """The CLI that the SDK would take, or None where it has to look for it itself."""
    brought = Path(str(sdk().__file__)).parent / "_bundled" / "claude"
    return str(brought) if brought.is_file() else shutil.which("claude")


def cli_path(wanted: str, folder: Path) -> str | None:
    """What the SDK is to start: a launcher below `folder`, or the program itself where there can be none."""
    program = wanted or bundled()
    if program is None or not sys.platform.startswith("linux") or not os.access(program, os.X_OK):
        return wanted or None
    launcher, script = folder / NAME, Path(__file__).with_name("die_with_parent.py")
    words = [sys.executable, "-I", "-S", str(script), str(os.getpid()), str(Path(program).absolute())]
    part = folder / f".{NAME}-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        part.chmod(stat.S_IRWXU)
        part.replace(launcher)  # a conversation may be starting the old one at this moment
    except OSError:
        return wanted or None
    return str(launcher) if os.access(launcher, os.X_OK) else wanted or None  # not where nothing may be executed
