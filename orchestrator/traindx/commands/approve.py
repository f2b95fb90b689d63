"""`traindx approve`: approve one option of the diagnosis a session waits with."""

from __future__ import annotations

import click

from traindx.completing import options_of_a_fix, session_ids


@click.command("approve")
@click.argument("session", shell_complete=session_ids)
@click.option("--option", required=True, type=click.Choice(["A", "B"], case_sensitive=False), help="A or B.",
              shell_complete=options_of_a_fix)
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--digest", help="Approve only if the diagnosis still has this digest.")
@click.option("--by", default="user", show_default=True, help="Who approves.")
@click.option("--wait", is_flag=True, help="Only record the approval; `traindx resume` applies the fix.")
def command(session: str, option: str, workspace: str | None, digest: str | None, by: str, wait: bool) -> int:
    """Approve OPTION of the diagnosis that SESSION waits with, then apply and verify it."""
    from traindx.commands.deciding import decision_on, go_on

    result = decision_on(session, workspace, "approve", option=option.upper(), digest=digest, by=by)
    return go_on(result, wait)
