"""Which shell commands a coding agent may run while a debug session is open.

Those that only read, by the policy; the skill's own script; and code, write-protected: `protected.py` hands the command
to the kernel with the project read-only, so that the command itself need not be judged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traindx.policy import Scope, Verdict, allowed

RUNNER = "tools/hooks/protected.py"
"""Relative to the plugin's root."""

_SCRIPT = re.compile(r"skills/[\w-]+/scripts/traindx_run\.py")
_PLAIN = re.compile(r"(?:[\w./:=@%+,~\-]|'[^']*'|\"[^\"$`\\!]*\"|[ \t])+(?:[ \t]2>&1)?[ \t]*")
"""A command line in which the shell does nothing but cut words."""

_CD = re.compile(
    r"\s*cd[ \t]+(?P<where>[\w./~+@-]+|'[^']*'|\"[^\"$`\\!]*\")[ \t]*(?:&&|;)[ \t]*(?P<rest>.+)", re.DOTALL)
_DECIDES = re.compile(
    r"(?:^|[;&|(\s'\"])(?:\S*/)?(?:traindx|python[\d.]*\s+(?:-\w+\s+)*-m\s+traindx)\s+(?:approve|reject|revise)\b"
    r"|traindx\.session\b.*\b(?:decide|direct|reopen_approach|confirm_fix)\b|\btraindx/gate/|\bTRAINDX_GATE", re.DOTALL)
_LAUNCHERS = re.compile(r"(?:[A-Z_][A-Z0-9_]*=[\w./:,-]*[ \t]+)*(?:timeout[ \t]+\d+[smh]?[ \t]+)?"
                        r"(?:python3?(?:\.\d+)?(?:[ \t]+-[umBX]+)*[ \t]+(?!-c\b)|pytest\b|torchrun\b|accelerate[ "
                        r"\t]+launch\b|deepspeed\b)")


def decides(command: str) -> bool:
    """True for a command that would decide in a person's place, or reach for the gate's own state."""
    return _DECIDES.search(command) is not None


def protected(command: str, plugin: str) -> str | None:
    """The command that runs write-protected, or None where this is no such call."""
    if not _PLAIN.fullmatch(command):
        return None
    words = _words(command)
    if len(words) < 3 or not re.fullmatch(r"(?:\S*/)?python3?(?:\.\d+)?", words[0]):
        return None
    if not _same(words[1], os.path.join(plugin, RUNNER)):
        return None
    rest = words[2:]
    while rest and rest[0].startswith("--"):
        if rest.pop(0) == "--":
            break
    return " ".join(rest)


def how_to_run(plugin: str, command: str = "COMMAND", *, copy: bool = False) -> str:
    """The line that runs a command write-protected, in a copy where `copy` is true."""
    return f"python3 {os.path.join(plugin, RUNNER)} {'--copy ' if copy else ''}-- {command}"


def judge_command(arguments: Mapping[str, Any], cwd: str, plugin: str, *, runs: bool) -> Verdict:
    """May this command run? `runs`: the person agreed to code without write protection."""
    command = str(arguments.get("command") or "")
    if decides(command):
        return Verdict(False, "decisions and the gate's state are the person's",
                       "show the diagnosis and wait; the person types the decision (in Claude Code `! traindx approve "
                       "SESSION --option A` runs in the person's name)")
    if protected(command, plugin) is not None or _is_script(command, plugin):
        return Verdict(True, "runs write-protected or only reads")
    moved = _CD.fullmatch(command)
    if moved is not None:
        where = os.path.join(cwd, os.path.expanduser(moved["where"].strip("'\"")))
        return judge_command({**arguments, "command": moved["rest"]}, where, plugin, runs=runs)
    if runs and _PLAIN.fullmatch(command) and _LAUNCHERS.match(command) and not arguments.get("run_in_background"):
        return Verdict(True, "the person agreed that code is run")
    verdict = allowed("Bash", arguments, "gather", Scope(Path(cwd), readable=(Path("/"),)))
    if verdict.allow:
        return verdict
    return Verdict(False, verdict.reason, "read with Read, Grep, Glob, cat, git diff; run code write-protected, which "
                   f"needs no approval: {how_to_run(plugin)} (output goes to scratch/debug/probes; --copy before -- "
                   f"runs "
                   "it in a copy that may be written)")


def _is_script(command: str, plugin: str) -> bool:
    """The skills' own script, which reads only, from the plugin's folder."""
    if not _PLAIN.fullmatch(command):
        return False
    words = _words(command)
    if len(words) < 2 or not re.fullmatch(r"(?:\S*/)?python3?(?:\.\d+)?", words[0]):
        return False
    real, root = os.path.realpath(os.path.expanduser(words[1])), os.path.realpath(plugin)
    within = os.path.isabs(os.path.expanduser(words[1])) and real.startswith(root + os.sep)
    return within and _SCRIPT.fullmatch(os.path.relpath(real, root)) is not None


def _same(one: str, other: str) -> bool:
    """True for the same file, where `one` does not depend on where the command runs."""
    full = os.path.expanduser(one)
    return os.path.isabs(full) and os.path.realpath(full) == os.path.realpath(other)


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return []


def exit_code(error: str) -> int | None:
    """The exit code in the host's report of a failed command."""
    found = re.search(r"[Ee]xit code (\d+)", error)
    return int(found[1]) if found is not None else None


NEVER_RAN = frozenset({2, 4, 5, 75, 126, 127, 130})
"""Exit codes of a command that was mistyped, not found or interrupted: nothing was verified (4, 5: pytest)."""


def is_verification(ran: str, wanted: tuple[str, ...]) -> bool:
    """True where the command that ran is one that the approved option names; any, where it names none."""
    bare = _bare(ran)
    return not wanted or any(_bare(w) in bare for w in wanted)


def _bare(text: str) -> str:
    return " ".join(text.replace("'", " ").replace('"', " ").replace("$ ", " ").split())
