"""`traindx debug`: a whole session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from traindx.scoping import scope_options
from traindx_tools.errors import BadUsage


@click.command("debug")
@click.argument("path", type=str)
@click.option("--verify", metavar="CMD", help="How a fix is checked; your consent to run CMD: before the "
              "gate in copies, where reading leaves the cause open, and in PATH after an approved fix.")
@click.option("--run", "allow_run", is_flag=True,
              help="Your consent to run code of the project before a fix, in copies that cannot change it (probes); "
                   "--verify includes it. It takes no command.")
@click.option("--symptom", default="", help="What you saw, in your words.")
@click.option("--artifact", "artifacts", multiple=True, help="A log, metrics file or folder (default: all of PATH).")
@scope_options
@click.option("--good-commit", help="The last commit that is known to be good.")
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds for one run of --verify.")
@click.option("--budget", "seconds", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For looking, in each turn of the session (default: 1800).")
@click.option("--steps", type=int, help="Steps that the verified run must reach.")
@click.option("--writable", multiple=True, metavar="DIR", help="A folder outside of PATH that --verify writes to.")
@click.option("--no-sandbox", is_flag=True, help="Run --verify without the sandbox (Landlock, bubblewrap).")
@click.option("--no-baseline", is_flag=True,
              help="Do not run --verify on the unfixed code first; then only a fault that is gone counts as fixed.")
@click.option("--baseline", "baseline_run", multiple=True, metavar="PATH",
              help="A log or metrics of the unfixed code under the same command: compared with, instead of a run.")
@click.option("--backend", type=click.Choice(["offline", "auto", "claude", "api"]),
              help="Who investigates: the instruments alone, Claude through its CLI, Claude over the Messages API, or "
                   "(auto) Claude when it can be reached (default: offline, or TRAINDX_BACKEND).")
@click.option("--model", help="The Claude model (default: the CLI's; the API has none).")
@click.option("--dollars", type=float, help="What the specialists of this session may cost at most.")
@click.option("--web", is_flag=True, default=None, help="Your consent to research on the web.")
@click.option("--json", "as_json", is_flag=True, help="The session's result as JSON on standard output.")
def command(path: str, verify: str | None, allow_run: bool, symptom: str, artifacts: tuple[str, ...],
            entry: tuple[str, ...], everything: bool, good_commit: str | None, timeout: float,
            seconds: float | None, steps: int | None,
            writable: tuple[str, ...],
            no_sandbox: bool, no_baseline: bool, baseline_run: tuple[str, ...], backend: str | None,
            model: str | None, dollars: float | None, web: bool | None, as_json: bool) -> int:
    """Debug the training code in PATH (a folder, or a log file that lies beside the code).

    Nothing is changed before you approve a diagnosis. Without a terminal the session waits on disk for
    `traindx approve`. Exit codes: 0 healthy or fixed (what the fix promised was seen to move), 1 a problem waits, 3
    more data is needed, or --verify passed and showed nothing of the fix.
    """
    from traindx.at_terminal import asked_within, exit_code, finish, interactive, say, with_a_way_back
    from traindx.investigators.choose import choose
    from traindx.live_view import watching
    from traindx.notices import Notice
    from traindx.session import run_debug_session_sync
    from traindx.settings import read_settings
    from traindx.verify import verify_from

    given = Path(path)
    if not given.is_dir() and not given.is_file():
        what = "is neither a folder nor a file" if given.exists() else "does not exist"
        raise BadUsage(f"{path} {what}: give the folder of the training code, or a log file beside it")
    for option, named_paths in (("--artifact", artifacts), ("--baseline", baseline_run)):
        absent = [a for a in named_paths if not Path(a).exists()]
        if absent:
            raise BadUsage(f"there is no file or folder {', '.join(absent)}: give {option} what there is")
    if (no_baseline or baseline_run) and (verify is None or (no_baseline and baseline_run)):
        raise BadUsage("--baseline PATH and --no-baseline belong to --verify CMD, and exclude each other")
    workspace = given if given.is_dir() else given.parent
    named = artifacts or (() if given.is_dir() else (str(given),))
    check = None if verify is None else verify_from({
        "command": verify, "timeout": timeout, "steps": steps, "sandbox": not no_sandbox,
        "writable": [str(Path(w).absolute()) for w in writable], "baseline": not no_baseline,
        "baseline_run": [str(Path(b).absolute()) for b in baseline_run]})
    settings = read_settings(workspace, {"backend": backend, "model": model, "dollars_all": dollars, "web": web},
                             os.environ)
    with watching(say, phases=settings.backend != "offline") as watch, with_a_way_back(watch):
        chosen = choose(workspace, settings, watch.hear)
        if settings.backend != "offline":
            watch.hear(Notice("said", text=chosen.said))
        result = run_debug_session_sync(
            symptom, workspace, artifacts=[str(Path(a).absolute()) for a in named] or None, verify=check,
            approve=asked_within(watch) if interactive() and not as_json else None,
            allow_run=allow_run or verify is not None,
            good_commit=good_commit, entry=entry, everything=everything, investigator=chosen, hear=watch.hear,
            budget=seconds)
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=1, allow_nan=False))
        return exit_code(result)
    return finish(result, approve=True)
