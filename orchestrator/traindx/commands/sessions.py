"""`traindx sessions`: the sessions of a workspace, and of every folder that sessions were begun in."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx_tools.errors import BadUsage

if TYPE_CHECKING:
    from traindx.session_result import SessionResult

STATUS_WIDE = 21
"""Columns of a status, those of "awaiting verification"."""
MOST_LINES = 4
"""Lines of a reason below its session: a cause with its place needs three at 80 columns."""


@click.command("sessions")
@click.argument("workspace", default=".")
@click.option("--workspace", "elsewhere", type=str, help="The same as WORKSPACE, as the other commands name it.")
@click.option("--all", "everywhere", is_flag=True, help="Those of all folders that you began sessions in.")
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def command(workspace: str, elsewhere: str | None, everywhere: bool, as_json: bool) -> None:
    """List the debug sessions of WORKSPACE, the oldest first; where it has none, those that there are elsewhere."""
    from traindx.page import columns
    from traindx.safe_text import line
    from traindx.session import list_sessions

    workspace = workspace if elsewhere is None else elsewhere
    if not Path(workspace).is_dir():
        raise BadUsage(f"there is no folder {workspace}: give the folder of the training code")
    found = _everywhere(Path(workspace), known=True) if everywhere else list_sessions(workspace)
    if as_json:
        rows = [{"session": r.session, "status": r.status, "reason": r.reason, "folder": r.folder} for r in found]
        click.echo(json.dumps(rows, indent=1))
        return
    if not found and not everywhere:
        found = _everywhere(Path(workspace), known=workspace == ".")
        click.echo(f"no sessions in {line(workspace)}, but elsewhere:" if found else
                   f"no sessions in {line(workspace)}: `traindx debug {line(workspace)}` starts one", err=True)
    for r in found:
        for text in _row(r, Path(workspace), columns(sys.stdout)):
            click.echo(text)


def _row(r: SessionResult, here: Path, wide: int) -> Iterator[str]:
    """One session on one line no longer than `wide`, with its folder where that is another one; a reason that does not
    fit there is told whole on the lines below.

    Behind it the ways on and back, where a session stopped that nobody drives.
    """
    from traindx.at_terminal import status_words
    from traindx.safe_text import block, line
    from traindx.standing import WAITS
    from traindx.typed_commands import from_here
    from traindx.typed_next import next_commands

    own = Path(r.workspace).resolve() == here.resolve()
    where = "" if own else f"  {block(from_here(r.workspace))}"
    head = f"{r.session}  {status_words(r.status):{STATUS_WIDE}}  "
    said = line(r.reason.replace(f"{WAITS}: ", "", 1))
    if len(head) + len(said) + len(where) <= wide:
        yield f"{head}{said}{where}"
    else:
        yield f"{head}{where}".rstrip()
        yield from textwrap.wrap(said, wide, initial_indent="  ", subsequent_indent="  ", break_long_words=False,
                                 break_on_hyphens=False, max_lines=MOST_LINES, placeholder=" …")
    if r.status in ("answered", "interrupted"):
        yield from (f"    {command}" for command in next_commands(r))


def _everywhere(workspace: Path, *, known: bool) -> tuple[SessionResult, ...]:
    """The sessions of the folders below this one, and of all that are `known`, each once, the oldest first."""
    from traindx.known_folders import known_folders
    from traindx.session import list_sessions
    from traindx.session_folder import below

    places = {p.resolve(): p for p in (workspace, *below(workspace), *(known_folders() if known else ()))}
    found = [r for place in places.values() for r in list_sessions(place)]
    return tuple(sorted(found, key=lambda r: r.session))
