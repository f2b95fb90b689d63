"""`traindx show`: where a session stands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from traindx.completing import session_ids


@click.command("show")
@click.argument("session", shell_complete=session_ids)
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def command(session: str, workspace: str | None, as_json: bool) -> int:
    """Show SESSION: its phase, the diagnosis with its questions, the attempts."""
    from traindx.at_terminal import describe, exit_code
    from traindx.page import coloured, columns
    from traindx.session import read_result
    from traindx.terminal import render_gate

    result = read_result(session, workspace=Path(workspace) if workspace is not None else None)
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=1, allow_nan=False))
        return exit_code(result)
    if result.diagnosis is not None:
        click.echo(render_gate(result.diagnosis, colour=coloured(sys.stdout), width=columns(sys.stdout)))
    click.echo("\n".join(describe(result)))
    if result.digest is not None:
        click.echo(f"  digest of this diagnosis, for `traindx approve --digest`: {result.digest}")
    return exit_code(result)
