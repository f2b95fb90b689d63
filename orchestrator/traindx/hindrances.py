"""Why a verification could not be made: what ended the command was the machine, and says nothing about the fix.

A missing package, a command that is not there, a full disk, a device or a port that is not to be had, a kill before
the first step: none of these is a strike. What the fix itself brought in (a name that only the fixed file has, a line
that the fix changed) and what the diagnosis was about stay failures of the fix.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from traindx.interpreters import ABSENT, Lacking, in_project, lacking, lacking_in
from traindx.model import Diagnosis, Verify
from traindx.verify import NewRun, Outcome
from traindx_tools.on_logs.run import ErrorEvent
from traindx_tools.on_logs.tracebacks import read_errors

COULD_NOT = "the fix could not be verified, which is no strike: "
"""Begins the reason of an interruption by the machine."""

TAIL_BYTES = 2**16
SHELL_LINES = 20
"""Lines at the end of an output without an exception that may name what stopped the command."""

_REPORTERS = ("ChildFailedError", "CalledProcessError")
"""Exceptions of launchers, which only say that the script failed."""
_NOT_IN = re.compile(r"cannot import name ['\"](\w+)['\"] from (?:partially initialized module )?['\"]([\w.]+)")


@dataclass(frozen=True)
class Change:
    """One file that the fix changed, before and after, as text."""

    path: str
    before: str
    after: str

    def brought(self, word: str) -> bool:
        """Whether the word came with the fix."""
        whole = rf"(?<!\w){re.escape(word)}(?!\w)"
        return bool(re.search(whole, self.after)) and not re.search(whole, self.before)

    def touches(self, line: int) -> bool:
        """Whether the line of the file as it is now was changed by the fix."""
        parts = SequenceMatcher(None, self.before.split("\n"), self.after.split("\n"), autojunk=False).get_opcodes()
        return any(kind != "equal" and first < line <= last for kind, _, _, first, last in parts)


@dataclass(frozen=True)
class Ended:
    """What a hindrance is judged by: how the command ended, the last error in its output, the fix, the workspace."""

    outcome: Outcome
    error: ErrorEvent | None
    """The last exception in its output that is no launcher's report of another."""
    said: str
    """Its type and message; without one, the last lines of the output."""
    changes: tuple[Change, ...]
    workspace: Path
    command: str = ""

    def ours(self, module: str) -> bool:
        """Whether a module belongs to the project, or its name came with the fix."""
        return in_project(module, self.workspace) or any(c.brought(n) for c in self.changes for n in module.split("."))

    @property
    def in_changed_line(self) -> bool:
        """Whether the last traceback goes through a line that the fix changed."""
        frames = self.error.frames if self.error is not None else ()
        return any(Path(f.file).name == Path(c.path).name and c.touches(f.line)
                   for f in frames for c in self.changes)


def hindrance(diagnosis: Diagnosis, verify: Verify, outcome: Outcome, after: NewRun, changes: Sequence[Change],
              workspace: Path) -> str | None:
    """What of the machine ended the command and what to do about it, None where the fix has to answer for it."""
    old = {e.rule for e in diagnosis.evidence if e.rule and (e.finding or {}).get("severity") not in ("info", "low")}
    if outcome.exit_code == 0 or outcome.cancelled or any(f.rule in old for f in after.findings):
        return None
    text = tail(outcome.folder / "output.log")
    error = last_error(text)
    said = f"{error.type}: {error.message}" if error is not None else "\n".join(text.splitlines()[-SHELL_LINES:])
    ended = Ended(outcome, error, said, tuple(changes), workspace,
                  verify.command if isinstance(verify.command, str) else shlex.join(verify.command or ()))
    if not ended.in_changed_line:
        for judged in _KINDS:
            found = judged(ended)
            if found:
                return found
    began = after.last_step is not None or bool(after.metrics)
    return None if began or about_ending(diagnosis) else _cut_off(outcome, verify)


def about_ending(diagnosis: Diagnosis) -> bool:
    """Whether the fault that was diagnosed is itself one that hangs a run or gets it killed."""
    from traindx_tools.catalog.catalog import load_catalog

    mode = load_catalog().get(diagnosis.failure_mode)
    return mode is not None and bool({"hang", "memory", "slow", "crash"}.intersection(mode.symptoms))


def _cut_off(outcome: Outcome, verify: Verify) -> str | None:
    """A run that was ended from outside before its first step."""
    if outcome.timed_out:
        return (f"the command did not end within {verify.timeout:g} s and showed no step: give a shorter run, or more "
                "time (--verify CMD --timeout SECONDS; from Python verify=Verify(command=CMD, timeout=SECONDS))")
    if outcome.out_of_memory:
        return ("the command was killed before its first step, as it used more memory than is allowed here: free "
                "memory, or give a smaller run (--verify CMD)")
    if outcome.exit_code in (-9, -15, 137, 143):
        return (f"the command was killed from outside before its first step (exit code {outcome.exit_code}): free "
                "memory, or see in `dmesg` who killed it")
    return None


def package_lacking(text: str, command: str, workspace: Path) -> Lacking | None:
    """The package whose absence ended an output, None where something else did or the package is the project's own."""
    error = last_error(text)
    return lacking_in(f"{error.type}: {error.message}", command, workspace) if error is not None else None


def _module(ended: Ended) -> str | None:
    """A package that is not installed, or not in the version that the code was written for."""
    absent = ABSENT.search(ended.said)
    if absent is not None:
        return None if ended.ours(absent[1]) else str(lacking(absent[1], ended.command, ended.workspace))
    name = _NOT_IN.search(ended.said)
    if name is not None:
        return None if ended.ours(name[2]) or ended.ours(name[1]) else (
            f"{name[2]} has no {name[1]} in the version that is installed: install the version that the code was "
            "written for")
    if "ImportError:" in ended.said:
        return f"something could not be imported ({_first_line(ended.said)}): install what it names"
    return None


_REFUSED = re.compile(r"^[\w./-]+: error: ((?:unrecognized arguments|the following arguments are required|argument "
                      r"|ambiguous option|invalid choice).*)", re.MULTILINE)
"""How `argparse` and what is built on it end before anything is run."""


def _command(ended: Ended) -> str | None:
    """A command, or a script that it names, which is not there."""
    missing = re.search(r"can't open file ['\"]([^'\"]+)", ended.said)
    if missing is not None and ended.outcome.exit_code == 2:
        return f"there is no script {missing[1]}: give the command that starts the training (--verify CMD)"
    refused = _REFUSED.search(ended.said)
    parses = any(c.before.count("add_argument") != c.after.count("add_argument") for c in ended.changes)
    if refused is not None and not parses:
        return (f"the program refuses the command's arguments ({refused[1][:120]}): give the command as it is typed to "
                "train (--verify CMD)")
    if ended.outcome.exit_code in (126, 127):
        said = _first_line(ended.said.strip().split("\n")[-1])
        return f"the command could not be started ({said}): install it, or give another one (--verify CMD)"
    return None


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0][:200]


_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]"),
     "there is no space left on the disk: free some"),
    (re.compile(r"No CUDA GPUs are available|not compiled with CUDA|Found no NVIDIA driver|CUDA driver version is "
                r"insufficient|no kernel image is available|torch\.cuda\.is_available\(\) is False|"
                r"CUDA unknown error|CUDA is not available", re.IGNORECASE),
     "no CUDA device can be used here: run it on a machine that has one, or give a command that trains on the CPU "
     "(--verify CMD)"),
    (re.compile(r"Address already in use|EADDRINUSE|\[Errno 98\]"),
     "the port that it listens on is in use: end the other process, or set another port (MASTER_PORT)"),
)


def _environment(ended: Ended) -> str | None:
    """A disk, a device or a port that is not to be had."""
    return next((told for words, told in _WORDS if words.search(ended.said)), None)


_KINDS: tuple[Callable[[Ended], str | None], ...] = (_module, _command, _environment)


def last_error(text: str) -> ErrorEvent | None:
    """The last exception in an output that is no launcher's report of another."""
    found = [e for e in read_errors(enumerate(text.splitlines(), 1), "output.log")
             if e.kind == "exception" and e.type.rpartition(".")[2] not in _REPORTERS]
    return max(found, key=lambda e: e.last_line or e.end_line, default=None)


def tail(path: Path) -> str:
    """The end of a file as text, "" where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
