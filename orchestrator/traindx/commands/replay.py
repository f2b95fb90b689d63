"""`traindx replay`: what a program failed on, once more: the batch checked on the CPU, or the whole captured step."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx_tools.errors import BadUsage

if TYPE_CHECKING:
    from traindx.step_replay import Answer

EPILOG = """\b
Exit codes: 0 nothing is out of range, or no change takes the step's failure
away; 1 an index is out of range, or a change takes the failure away; 2 bad
usage or unreadable input; 3 the step could not be replayed (it says why).
"""


@click.command("replay", epilog=EPILOG)
@click.argument("file", type=str, metavar="FILE_OR_FOLDER")
@click.option("--run", "run_command", metavar="CMD", help="Your consent to start the program with CMD in a protected "
              "copy, up to its first step, where the captured step is put in.")
@click.option("--workspace", type=str, default=".", show_default=True, help="The folder of the training code.")
@click.option("--budget", type=click.FloatRange(min=1.0), metavar="SECONDS", help="For everything (default: 300).")
@click.option("--no-sandbox", is_flag=True, help="Run without the sandbox of this machine.")
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on standard output.")
def command(file: str, run_command: str | None, workspace: str, budget: float | None, no_sandbox: bool,
            as_json: bool) -> int:
    """Replay what a program failed on: a captured step (.step.npz, with --run CMD), or a batch (.batch.npz).

    `traindx run --snapshot` keeps the step that goes wrong. It is run again in a fresh process of the program: as it
    is, which must give the captured loss, and with one change at a time; modules, gradients and the origin of what is
    not finite are told. A batch, which `traindx run` keeps when a program fails on an index, is checked without running
    anything: which index, where, in which table. A folder of a run stands for what is in it.
    """
    path = Path(file)
    if run_command is not None:
        return _step(path, run_command, workspace, budget, no_sandbox, as_json)
    from traindx_tools.live.step_file import steps_in

    if steps_in(path) and not (path.is_dir() and list(path.glob("*.batch.npz"))):
        raise BadUsage(f"{path} is a captured step: add --run CMD, the command that trained, as your consent to start "
                       "it in a protected copy")
    return _batch(path, as_json)


def _batch(path: Path, as_json: bool) -> int:
    from traindx_tools.live.batch_file import batch_in, read_batch, replay

    arrays, checks = read_batch(batch_in(path))
    outcomes = replay(arrays, checks)
    if as_json:
        click.echo(json.dumps({"arrays": {k: [str(a.dtype), list(a.shape)] for k, a in arrays.items()},
                               "outcomes": [{**asdict(o), "text": str(o)} for o in outcomes]}))
    else:
        for name, array in arrays.items():
            click.echo(f"{name}: {array.dtype} {list(array.shape)}")
        for outcome in outcomes or ():
            click.echo(str(outcome))
        if not outcomes:
            click.echo("nothing in it is known to be an index or a label")
    return int(any(o.bad for o in outcomes))


def _step(path: Path, run_command: str, workspace: str, budget: float | None, no_sandbox: bool, as_json: bool) -> int:
    from traindx.model import Verify
    from traindx.step_replay import SECONDS, Request, chosen, replay_step

    request = Request(chosen(path), run_command, Path(workspace), budget or SECONDS, Verify(sandbox=not no_sandbox))
    answer = replay_step(request, lambda text: click.echo(f"traindx: {text}", err=True))
    if as_json:
        click.echo(json.dumps(answer.to_json(), indent=1, allow_nan=False))
    else:
        _print(answer)
    return answer.exit_code


def _print(answer: Answer) -> None:
    from traindx.safe_text import block
    from traindx.step_told import lines

    for text in lines(answer):
        click.echo(block(text.replace("\n", " ")))
