"""`traindx sessions`: the sessions of a workspace."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from traindx_tools.errors import BadUsage


@click.command("sessions")
@click.argument("workspace", default=".")
@click.option("--workspace", "elsewhere", type=str, help="The same as WORKSPACE, as the other commands name it.")
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def command(workspace: str, elsewhere: str | None, as_json: bool) -> None:
    """List the debug sessions of WORKSPACE, the oldest first."""
    from traindx.at_terminal import status_words
    from traindx.safe_text import block, line
    from traindx.session import list_sessions
    from traindx.session_folder import below

    workspace = workspace if elsewhere is None else elsewhere
    if not Path(workspace).is_dir():
        raise BadUsage(f"there is no folder {workspace}: give the folder of the training code")
    found = list_sessions(workspace)
    if as_json:
        rows = [{"session": r.session, "status": r.status, "reason": r.reason, "folder": r.folder} for r in found]
        click.echo(json.dumps(rows, indent=1))
        return
    for r in found:
        click.echo(f"{r.session}  {status_words(r.status):21}  {line(r.reason)}")
    if not found:
        near = below(Path(workspace))
        click.echo(f"no sessions in {line(workspace)}, but below it: " if near else
                   f"no sessions in {line(workspace)}: `traindx debug {line(workspace)}` starts one", err=True)
        for folder in near:
            click.echo(f"  traindx sessions {block(shlex.quote(str(folder)))}", err=True)
