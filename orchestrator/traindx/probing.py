"""Code of an agent's own, run in a protected copy of the workspace: what it prints is evidence, nothing else is left.

Only where the runner can protect (Landlock or bubblewrap): a probe never runs without. Time, memory and output are
bounded. Variables that look like keys do not reach it.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from traindx.investigators.claude_code.redaction import redacted
from traindx.model import Verify
from traindx.runner.plan import UNPROTECTED
from traindx.safe_text import block
from traindx.sandbox import START
from traindx.verify import Outcome, clean_environment, memory_limit, supervised
from traindx_tools.errors import TraindxError

SECONDS, MOST_SECONDS = 60.0, 600.0
OUTPUT_LIMIT = 2 * 2**20
"""Bytes of output that are kept: the beginning and the end."""
KEPT_CHARACTERS = 200_000
CODE_AT_MOST = 50_000
_ENVIRONMENTS = (".venv/bin/python", "venv/bin/python", "env/bin/python")


class NotRun(TraindxError):
    """A probe could not be protected, and was not run."""


@dataclass(frozen=True)
class Probe:
    """What is run: Python, or (`shell`) a command, at most `seconds` long, in a copy of the workspace."""

    code: str
    shell: bool = False
    seconds: float = SECONDS

    def words(self, workspace: Path) -> list[str]:
        """The command line, in the runner."""
        protected = [sys.executable, "-I", "-S", str(START), "--copy", "--fresh", "--hide-keys", "--workspace",
                     str(workspace.resolve())]
        if self.shell:
            return [*protected, "--shell", self.code]
        return [*protected, "--", interpreter(workspace), "-c", self.code]


@dataclass(frozen=True)
class Ran:
    """How a probe ended and what it printed, redacted and bounded."""

    text: str
    exit_code: int | None
    seconds: float
    ended: str
    """How it ended, in words."""


def interpreter(workspace: Path) -> str:
    """The Python of the project where it has one of its own, else this one."""
    own = next((workspace / e for e in _ENVIRONMENTS if os.access(workspace / e, os.X_OK)), None)
    return str(own or sys.executable)


async def run(probe: Probe, workspace: Path, folder: Path) -> Ran:
    """Run it once; `folder` holds what the run is watched with, and is gone afterwards. Raises NotRun."""
    spec = {"argv": probe.words(workspace), "cwd": str(workspace.resolve()), "timeout": probe.seconds,
            "memory_bytes": memory_limit(Verify()), "output_limit": OUTPUT_LIMIT}
    environment = {**clean_environment(os.environ), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        outcome = await supervised(folder, spec, environment, outlives=False)
        return _told(outcome)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(outcome: Outcome) -> Ran:
    try:
        printed = (outcome.folder / "output.log").read_bytes().decode("utf-8", "replace")
    except OSError:
        printed = ""
    if outcome.exit_code == UNPROTECTED and "protected: not run" in printed:
        raise NotRun(block(printed, 600).strip())
    text = block(redacted(printed), KEPT_CHARACTERS)
    return Ran(text, outcome.exit_code, outcome.seconds, _ended(outcome))


def _ended(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"ended after {outcome.seconds:.0f} s, its limit"
    if outcome.out_of_memory:
        return "ended for its memory"
    if outcome.exit_code is None:
        return "cancelled"
    return f"exit code {outcome.exit_code} after {outcome.seconds:.1f} s"
