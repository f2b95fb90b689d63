"""`traindx revise`: send a diagnosis back with what you know."""

from __future__ import annotations

import click

from traindx.completing import session_ids


@click.command("revise")
@click.argument("session", shell_complete=session_ids)
@click.option("--comment", required=True, help="What you know that the diagnosis misses.")
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--by", default="user", show_default=True, help="Who says so.")
def command(session: str, comment: str, workspace: str | None, by: str) -> int:
    """Send the diagnosis that SESSION waits with back; evidence is gathered again with your comment."""
    from traindx.commands.deciding import decision_on, go_on

    return go_on(decision_on(session, workspace, "revise", by=by, comment=comment), wait=False)
