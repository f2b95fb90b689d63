"""`--not NAME --because TEXT`: what a person disagrees with, now and at every later run of the project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from traindx.completing import page_ids
from traindx_tools.errors import BadUsage

Command = TypeVar("Command", bound=Callable[..., Any])


def not_options(command: Command) -> Command:
    """Adds both options to a command, as `disagreed` and `because`."""
    reason = click.option("--because", metavar="TEXT", default="", help="Why, for the next person: goes with --not.")
    name = click.option("--not", "disagreed", multiple=True, metavar="NAME", shell_complete=page_ids,
                        help="A rule (L204, L204-1) or a failure mode (lr.too-high) that is wrong about this project: "
                             "set aside now and at later runs (traindx.toml), which is said each time. May be "
                             "repeated.")
    return name(reason(command))


def written_down(disagreed: Sequence[str], because: str, folder: Path) -> str:
    """Writes what is set aside into the project's file; one line about that, "" where nothing is.

    Raises BadUsage for a name that is unknown and for a missing reason; nothing is written then.
    """
    if not disagreed:
        if because:
            raise BadUsage("--because gives the reason for --not NAME: say what you disagree with")
        return ""
    from traindx.project_file import checked, remember
    from traindx_tools.set_aside import called

    made = [checked(name, because, source="--not") for name in disagreed]
    written = [remember(folder, one) for one in made]
    return f"{', '.join(called(a.name) for a in made)}: set aside from now on, written in {written[-1]}"
