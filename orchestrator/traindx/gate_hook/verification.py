"""The end of a command: was it the agreed verification, and how did it end?"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from traindx.gate_hook.state import State
from traindx.gate_hook.wrapping import unwrapped

NEVER_RAN = frozenset({75, 126, 127, 130, 137, 143})
"""Exit codes of a command that was not run, not found or ended from outside: that is a question, no strike."""


def exit_code(error: str) -> int | None:
    """The exit code in the host's report of a failed command."""
    found = re.search(r"[Ee]xit code (\d+)", error)
    return int(found[1]) if found is not None else None


def is_agreed(ran: str, agreed: tuple[str, ...], cwd: str, state: State, plugin: str) -> bool:
    """True where the whole command is one that the approved option names, run in the workspace itself."""
    found = unwrapped(ran, plugin, state.workspace)
    where = os.path.expanduser(found.cd.strip("'\""))
    here = os.path.realpath(os.path.join(cwd, where)) == os.path.realpath(state.workspace)
    return here and any(_bare(found.command) == _bare(one) for one in agreed)


def resembled(ran: str, agreed: tuple[str, ...], state: State, plugin: str) -> str | None:
    """The agreed command that the one that ran is another spelling of: wrapped, in another folder, `python3 ./x.py`."""
    words = _spelled(unwrapped(ran, plugin, state.workspace).command)
    for one in agreed:
        sought = _spelled(one)
        starts = [i for i in range(len(words)) if words[i:i + len(sought)] == sought]
        if any(not _ARGUMENT.match("".join(words[i + len(sought):i + len(sought) + 1])) for i in starts):
            return one
    return None


_SEPARATOR = re.compile(r"(\|\||&&|[;|&()\n]|\d*>+&?\d*)")
_ARGUMENT = re.compile(r"[^;|&()\n\d>]|\d+[^\d>]|\d+$")
"""What may not follow: with another argument it is another command."""
_PYTHON = re.compile(r"(?:\S*/)?python[\d.]*")


def _spelled(text: str) -> list[str]:
    """The words of a command, where spellings of one program are one."""
    words = [w for part in _SEPARATOR.split(text) for w in ([part] if _SEPARATOR.fullmatch(part) else part.split())]
    bare = [w.strip("'\"$").removeprefix("./") for w in words]
    named = " ".join("python" if _PYTHON.fullmatch(w) else w for w in bare if w)
    return named.replace("python -m pytest", "pytest").split(" ")


def _bare(text: str) -> str:
    """Without a prompt's `$`, and with one space where several are: nothing else may differ."""
    return " ".join(text.strip().removeprefix("$ ").split())


def in_background(arguments: Mapping[str, Any], response: object) -> bool:
    """True for a command whose end is not known yet."""
    told = isinstance(response, Mapping) and (response.get("backgroundTaskId") or response.get("interrupted"))
    return bool(arguments.get("run_in_background") or told)
