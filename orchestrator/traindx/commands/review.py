"""`traindx review`: read a waiting diagnosis in a browser and decide there."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from traindx.completing import session_ids


@click.command("review")
@click.argument("session", shell_complete=session_ids)
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N",
              help="Listen on this port of 127.0.0.1 (default: a free one).")
@click.option("--by", default="user", show_default=True, help="Who decides.")
@click.option("--wait", is_flag=True, help="Only record the decision; `traindx resume` goes on.")
@click.option("--open", "browser", is_flag=True, help="Open the page in the browser of this machine.")
def command(session: str, workspace: str | None, port: int, by: str, wait: bool, browser: bool) -> int:
    """Show the diagnosis that SESSION waits with as a page on 127.0.0.1; the decision is made there.

    The page says what each decision does, and follows the session to its result. Where it comes to another diagnosis
    (after a revision, a rejection, or a fix that failed) the same page shows that one and takes the next decision.

    From another machine: `ssh -L PORT:127.0.0.1:PORT HOST`, then open the address as it is shown.
    """
    from traindx.at_terminal import finish, resumed
    from traindx.review import WAITS, Server, review_page
    from traindx.session import NotWaiting, decide, read_result
    from traindx.standing import NOTHING_APPLIED
    from traindx_tools.errors import BadUsage

    waiting = read_result(session, workspace=None if workspace is None else Path(workspace))
    if waiting.digest is None or waiting.status != WAITS:
        raise NotWaiting(f"session {waiting.session} waits for no decision: {waiting.reason}")
    anew = f"traindx review {waiting.session} --workspace {shlex.quote(waiting.workspace)}"
    try:
        server = Server(lambda: read_result(waiting.folder), lambda d: decide(waiting.folder, d), review_page,
                        port=port, by=by, say=lambda text: click.echo(f"traindx: {text}", err=True), anew=anew,
                        follows=not wait)
    except OSError as error:
        raise BadUsage(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}. Name another with --port, or none"
                       ) from error
    click.echo(f"{server.address}\n\nopens the review of session {waiting.session} once, in one browser, which may "
               f"reload it. From another machine, first: ssh -L {server.port}:127.0.0.1:{server.port} HOST. For a "
               f"fresh address: {anew}. Ctrl-C leaves it undecided.")
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    while True:
        try:
            done = server.serve()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_standing(waiting.folder, waiting.session)) from None
        click.echo(f"{done.said}: recorded")
        if wait:
            return finish(done.result, approve=True)
        with server.following():
            after = resumed(waiting.folder, ask=False)
            if after.status != WAITS:
                return finish(after, approve=True)
        again = f"{after.reason}: " if after.reason.startswith(NOTHING_APPLIED) else "another diagnosis waits: "
        click.echo(f"{again}the same page shows it and takes the decision. Ctrl-C leaves it undecided.")


def _standing(folder: str, session: str) -> str:
    """Where the session stands when the review is closed: it may have been decided here or elsewhere."""
    from traindx.review import WAITS
    from traindx.session import read_result
    from traindx.typed_commands import workspace_option
    from traindx_tools.errors import TraindxError

    try:
        now = read_result(folder)
    except (TraindxError, OSError) as error:
        return f"the session cannot be read any more: {error}"
    where = workspace_option(now.workspace)
    if now.status == WAITS:
        return f"nothing was decided, the session still waits: traindx review {session}{where}"
    return f"the session was decided meanwhile ({now.status.replace('_', ' ')}): traindx show {session}{where}"
