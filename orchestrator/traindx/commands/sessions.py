"""`traindx sessions`: the sessions of a workspace."""

from __future__ import annotations

import json
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
    from traindx.safe_text import line
    from traindx.session import list_sessions

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
        click.echo(f"no sessions in {workspace}: `traindx debug {workspace}` starts one", err=True)
