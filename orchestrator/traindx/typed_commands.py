"""Commands about a session as they are typed where one stands."""

from __future__ import annotations

import os
import re
import shlex
from itertools import takewhile
from pathlib import Path

from traindx.model import Budget
from traindx.turn import NO_MORE, SPENT

_OF_A_PATH = frozenset({"--give", "--against", "--workspace"})
"""Options of ours whose value is a path."""
ENOUGH_SECONDS = 60.0
"""The least that is proposed where a budget was spent: reading a small run takes seconds, on a busy machine more."""
_INTO = re.compile(r"cd (\S+|'[^']*') && ")


def from_here(folder: str | Path) -> str:
    """A folder as it is typed in the current directory; from the root of the file system as anywhere else."""
    path, here = Path(folder).resolve(), Path.cwd().resolve()
    below = path.is_relative_to(here) and here != Path(here.anchor)
    return str(path.relative_to(here)) if below else str(path)


def workspace_option(workspace: str | Path) -> str:
    """What a command about a session needs behind it where the workspace is not the current directory."""
    here = Path(workspace).resolve() == Path.cwd().resolve()
    return "" if here else f" --workspace {shlex.quote(from_here(workspace))}"


def more_than(reason: str, budget: Budget) -> str:
    """The option of `traindx resume` that an interruption for want of a budget needs, else ""."""
    if reason.startswith(SPENT):
        return f" --budget {max(2 * budget.seconds, ENOUGH_SECONDS):g}"
    return f" --attempts {2 * budget.attempts}" if reason.endswith(NO_MORE) else ""


def from_anywhere(command: str) -> str:
    """A command that was typed for the current directory, with its paths absolute: it is kept, and pasted elsewhere."""
    if into := _INTO.match(command):
        return f"cd {shlex.quote(os.path.abspath(shlex.split(into[1])[0]))} && {command[into.end():]}"
    words = shlex.split(command)
    if words[:1] != ["traindx"]:
        return command
    given = len(list(takewhile(lambda word: not word.startswith("--"), words)))
    paths = {*range(2, given), *(i + 1 for i, word in enumerate(words[:-1]) if word in _OF_A_PATH)}
    return shlex.join(os.path.abspath(w) if i in paths and os.path.exists(w) else w for i, w in enumerate(words))
