"""Commands about a session as they are typed where one stands."""

from __future__ import annotations

import shlex
from pathlib import Path

from traindx.model import Budget
from traindx.turn import NO_MORE, SPENT


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
        return f" --budget {2 * budget.seconds:g}"
    return f" --attempts {2 * budget.attempts}" if reason.endswith(NO_MORE) else ""
