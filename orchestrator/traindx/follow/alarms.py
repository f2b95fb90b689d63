"""How a person is called to a finding: a notice on the desktop, a command of theirs.

The text of a finding comes from a log: it is handed over as an argument, in the environment and on standard input, and
no shell ever reads it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from traindx.safe_text import line
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding

PATIENCE = 60.0
"""Seconds that a command may take; the log is not read meanwhile."""
WIDEST = 240
"""Characters of a notice."""
_APPLE = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"

Run = Callable[[Sequence[str], bytes, dict[str, str]], str]
"""Runs a command with standard input and environment; what went wrong in words, "" for nothing."""


@dataclass
class Alarm:
    """What is done at each finding. What fails is said once."""

    desktop: tuple[str, ...] = ()
    """The command of a notice, without its title and text."""
    command: tuple[str, ...] = ()
    run: Run = field(default_factory=lambda: run_bounded)
    _said: set[str] = field(default_factory=set)

    def raise_for(self, finding: Finding, place: str) -> list[str]:
        """Calls the person; gives what went wrong, each thing once."""
        text = line(f"{finding.statement} ({place})")
        wrong = []
        if self.desktop:
            title = f"traindx: {finding.severity.value}, {finding.rule}"
            wrong.append(self.run((*self.desktop, title, text[:WIDEST]), b"", {}))
        if self.command:
            told = {"TRAINDX_RULE": finding.rule, "TRAINDX_SEVERITY": finding.severity.value,
                    "TRAINDX_STATEMENT": text, "TRAINDX_PLACE": place}
            data = json.dumps(finding.to_json()).encode()
            wrong.append(self.run(self.command, data, told))
        new = [w for w in dict.fromkeys(wrong) if w and w not in self._said]
        self._said.update(new)
        return new


def alarm_of(notify: bool, command: str | None) -> Alarm:
    """What was asked for. Raises BadUsage for a command that is none, and where no notice can be shown here."""
    try:
        words = tuple(shlex.split(command)) if command is not None else ()
    except ValueError as broken:
        raise BadUsage(f"--on-finding {command!r} is no command: {broken}") from broken
    if command is not None and (not words or shutil.which(words[0]) is None):
        raise BadUsage(f"--on-finding: there is no program {(words or ('',))[0]!r}. A finding is handed to it as JSON "
                       "on standard input, and as TRAINDX_RULE, TRAINDX_SEVERITY, TRAINDX_STATEMENT and TRAINDX_PLACE")
    return Alarm(_desktop() if notify else (), words)


def _desktop() -> tuple[str, ...]:
    if sys.platform == "darwin":
        return ("osascript", "-e", _APPLE)
    if shutil.which("notify-send") is not None:
        return ("notify-send", "--app-name=traindx", "--")
    raise BadUsage("--notify needs `notify-send` (package libnotify-bin) or macOS; --on-finding CMD runs a command of "
                   "yours")


def run_bounded(command: Sequence[str], data: bytes, told: dict[str, str]) -> str:
    """Runs a command without a shell and without its output; it is ended after `PATIENCE` seconds."""
    try:
        done = subprocess.run(command, input=data, env={**os.environ, **told}, capture_output=True, timeout=PATIENCE,
                              start_new_session=True, check=False)
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {PATIENCE:g} s and was ended"
    except OSError as failed:
        return f"{command[0]} could not be run: {failed.strerror}"
    if done.returncode:
        said = line(done.stderr.decode("utf-8", "replace"))[-200:]
        return f"{command[0]} ended with {done.returncode}{f': {said}' if said else ''}"
    return ""
