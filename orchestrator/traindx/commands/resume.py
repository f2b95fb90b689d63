"""`traindx resume`: go on with a session."""

from __future__ import annotations

from pathlib import Path

import click

from traindx.completing import session_ids
from traindx_tools.errors import BadUsage


@click.command("resume")
@click.argument("session", shell_complete=session_ids)
@click.option("--workspace", type=str, help="Where the session lives (default: here).")
@click.option("--verify", metavar="CMD", help="How the fix is checked; your consent to run CMD.")
@click.option("--timeout", type=float, help="Seconds for one run of --verify (default: 1800).")
@click.option("--no-baseline", is_flag=True, help="Do not run --verify on the unfixed code first.")
@click.option("--run", "allow_run", is_flag=True, help="Consent to run the session's verification command.")
@click.option("--accept-changes", is_flag=True, help="The files that a halt names are yours and right as they are.")
@click.option("--give", "given", multiple=True, help="More artifacts, for a session that asked for data.")
@click.option("--different", is_flag=True, help="After three strikes: try a fundamentally different approach.")
@click.option("--stop", is_flag=True, help="After three strikes: stop.")
@click.option("--passed/--failed", "passed", default=None, help="You checked the fix yourself: did it help?")
@click.option("--undo", is_flag=True, help="Take the applied fix back, unjudged: no strike, the diagnosis waits again.")
@click.option("--budget", "seconds", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For looking, in each turn from now on (default: as before, 1800).")
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="How many fixes the session may try in all.")
@click.option("--remember", is_flag=True, help="Your consent to add what it taught to the project's notes.")
@click.option("--comment", default="", help="What you saw, with --passed, --failed, --different or --stop.")
def command(session: str, workspace: str | None, verify: str | None, timeout: float | None, no_baseline: bool,
            allow_run: bool, accept_changes: bool, given: tuple[str, ...], different: bool, stop: bool,
            passed: bool | None, undo: bool, seconds: float | None, attempts: int | None, remember: bool,
            comment: str) -> int:
    """Go on with SESSION after an interruption, a decision, an edit of yours or a halt."""
    from traindx.at_terminal import finish, resumed, tell
    from traindx.model import Direction
    from traindx.session import confirm_fix, direct, give_data, read_result, record_knowledge
    from traindx.terms import larger
    from traindx.undoing import undo_fix

    where = Path(workspace) if workspace is not None else None
    folder = read_result(session, workspace=where).folder
    absent = [g for g in given if not Path(g).exists()]
    if absent:
        raise BadUsage(f"there is no file or folder {', '.join(absent)}: give --give what there is")
    if remember:
        for path in record_knowledge(folder, consent=True):
            tell(f"written: {path}")
        return 0
    if undo and (passed is not None or verify is not None or different or stop):
        raise BadUsage("--undo takes the fix back without a judgement: give it alone, then decide on the diagnosis")
    if undo:
        return finish(undo_fix(folder, comment=comment), approve=False)
    if given:
        give_data(folder, [str(Path(g).absolute()) for g in given], comment=comment)
    if passed is not None:
        confirm_fix(folder, passed=passed, comment=comment or "checked by hand")
    if different or stop:
        after = direct(folder, Direction(choice="stop" if stop else "different", comment=comment))
        if stop:
            return finish(after, approve=False)
    if (timeout is not None or no_baseline) and verify is None:
        raise BadUsage("--timeout and --no-baseline belong to --verify CMD: give both")
    check = None if verify is None else {"command": verify, "baseline": not no_baseline,
                                         **({} if timeout is None else {"timeout": timeout})}
    consent = True if allow_run or verify is not None else None
    result = resumed(folder, ask=True, verify=check, allow_run=consent, accept_changes=accept_changes,
                     budget=larger(folder, seconds, attempts))
    return finish(result, approve=True)
