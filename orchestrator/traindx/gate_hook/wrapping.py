"""Every shell command of a coding agent, rewritten so that it runs in the protected runner: nothing about it is judged.

`command` becomes `PYTHON -I -S protected.py --workspace W --shell 'command'`, with an absolute interpreter and an
absolute runner. Only a leading `cd FOLDER` stays outside, for the host keeps the folder of one command for the next.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

RUNNER = "tools/hooks/protected.py"
"""Relative to the plugin's root."""

_CD = re.compile(r"\s*(?P<cd>cd[ \t]+(?P<where>[\w./~+@][\w./~+@-]*|'[^']*'|\"[^\"$`\\!]*\"))"
                 r"[ \t]*(?:(?:&&|;|\n)\s*(?P<rest>\S.*))?", re.DOTALL)
_LONGEST = 120_000
"""Characters: Linux takes at most 128 KiB in one argument."""


class Asked(NamedTuple):
    """What the agent wrote, out of the line that runs it."""

    command: str
    copy: bool
    cd: str = ""
    """The folder of a leading `cd`, or nothing."""


def quoted(text: str) -> str:
    """One word for any shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def runner_words(plugin: str, workspace: str) -> str:
    """The beginning of every wrapped command."""
    return (f"{quoted(sys.executable)} -I -S {quoted(os.path.join(plugin, RUNNER))} --workspace {quoted(workspace)} ")


def asked(command: str, plugin: str) -> Asked:
    """The agent's command in parts: a leading cd, and whether the agent named the runner itself."""
    rest, where = command, ""
    found = _CD.fullmatch(command)
    if found is not None:
        rest, where = found["rest"] or "", found["where"]
    own = _own_runner(rest, plugin)
    return Asked(rest, False, where) if own is None else own._replace(cd=where)


def _own_runner(command: str, plugin: str) -> Asked | None:
    """`python3 RUNNER [--copy] [--] COMMAND`, as the agent is told to write it."""
    path = os.path.join(plugin, RUNNER)
    named = "|".join(re.escape(form) for form in (path, quoted(path), f'"{path}"'))
    found = re.fullmatch(rf"\s*(?:{re.escape(sys.executable)}|python3?)[ \t]+(?:{named})(?P<copy>[ \t]+--copy)?"
                         r"(?:[ \t]+--(?=[ \t]))?[ \t]+(?P<command>[^-\s].*)", command, re.DOTALL)
    return None if found is None else Asked(found["command"], found["copy"] is not None)


def wrapped(command: str, plugin: str, workspace: str, *, fresh: bool = False) -> str:
    """The line that is run in its place; `fresh`: with nothing that an earlier command left in caches.

    Raises ValueError for one that is too long.
    """
    if len(command) > _LONGEST:
        raise ValueError(f"the command has {len(command)} characters, at most {_LONGEST} are possible: write the text "
                         "to a file below scratch/debug with Write")
    found = asked(command, plugin)
    flags = f"{'--fresh ' if fresh else ''}{'--copy ' if found.copy else ''}"
    run = f"{runner_words(plugin, workspace)}{flags}--shell {quoted(found.command)}"
    if not found.cd:
        return run
    return f"cd {found.cd} && {run}" if found.command else f"cd {found.cd}"


def unwrapped(command: str, plugin: str, workspace: str) -> Asked:
    """What the agent asked for, from the line that ran: as it was rewritten, or as it was written."""
    found = asked(command, plugin)
    start = runner_words(plugin, workspace)
    if not found.command.startswith(start):
        return found
    rest = found.command[len(start):].removeprefix("--fresh ")
    copy = rest.startswith("--copy ")
    text = rest[len("--copy "):] if copy else rest
    if not (text.startswith("--shell '") and text.endswith("'")):
        return found
    return Asked(text[len("--shell '"):-1].replace("'\"'\"'", "'"), copy, found.cd)


def how_to_run(plugin: str, command: str = "COMMAND", *, copy: bool = False) -> str:
    """The line that an agent writes to run a command in a copy where `copy` is true."""
    return f"python3 {os.path.join(plugin, RUNNER)} {'--copy ' if copy else ''}-- {command}"
