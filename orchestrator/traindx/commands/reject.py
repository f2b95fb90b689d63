"""`traindx reject`: the diagnosis is wrong."""

from __future__ import annotations

import click

from traindx.completing import session_ids
from traindx_tools.errors import BadUsage


@click.command("reject")
@click.argument("session", shell_complete=session_ids)
@click.option("--reason", required=True, help="What speaks against it: the next look reads this.")
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--by", default="user", show_default=True, help="Who rejects.")
def command(session: str, reason: str, workspace: str | None, by: str) -> int:
    """Reject the diagnosis that SESSION waits with. `traindx resume` looks for another cause."""
    from traindx.commands.deciding import decision_on, go_on

    if not reason.strip():
        raise BadUsage("--reason is empty: say what speaks against the diagnosis, such as 'it fails without X too'")
    return go_on(decision_on(session, workspace, "reject", by=by, comment=reason), wait=True)
