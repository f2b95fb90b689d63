"""`traindx debug`: a whole session."""

from __future__ import annotations

import json
from pathlib import Path

import click

from traindx_tools.errors import BadUsage


@click.command("debug")
@click.argument("path", type=str)
@click.option("--verify", metavar="CMD", help="How a fix is checked; your consent to run CMD after an approved fix.")
@click.option("--symptom", default="", help="What you saw, in your words.")
@click.option("--artifact", "artifacts", multiple=True, help="A log, metrics file or folder (default: all of PATH).")
@click.option("--good-commit", help="The last commit that is known to be good.")
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds for one run of --verify.")
@click.option("--steps", type=int, help="Steps that the verified run must reach.")
@click.option("--json", "as_json", is_flag=True, help="The session's result as JSON on standard output.")
def command(path: str, verify: str | None, symptom: str, artifacts: tuple[str, ...], good_commit: str | None,
            timeout: float, steps: int | None, as_json: bool) -> int:
    """Debug the training code in PATH (a folder, or a log file that lies beside the code).

    Nothing is changed before you approve a diagnosis. Without a terminal the session waits on disk for
    `traindx approve`. Exit codes: 0 healthy or fixed, 1 a problem waits, 3 more data is needed.
    """
    from traindx.at_terminal import ask_approval, exit_code, finish, interactive
    from traindx.model import Verify
    from traindx.session import run_debug_session_sync

    given = Path(path)
    if not given.exists():
        raise BadUsage(f"{path} does not exist: give the folder of the training code, or a log file beside it")
    workspace = given if given.is_dir() else given.parent
    named = artifacts or (() if given.is_dir() else (str(given),))
    check = Verify(command=verify, timeout=timeout, steps=steps) if verify else None
    result = run_debug_session_sync(
        symptom, workspace, artifacts=[str(Path(a).absolute()) for a in named] or None, verify=check,
        approve=ask_approval if interactive() and not as_json else None, allow_run=verify is not None,
        good_commit=good_commit)
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=1, allow_nan=False))
        return exit_code(result)
    return finish(result, approve=True)
