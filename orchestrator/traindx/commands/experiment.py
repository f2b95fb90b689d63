"""`traindx experiment`: one change, one control, one verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx import completing
from traindx.page import columns
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.arms import MOST_REPEATS

if TYPE_CHECKING:
    from traindx.experiments import Answer, Request
    from traindx_tools.experiments.outcome import Outcome

EPILOG = """\b
Exit codes: 0 decided, no change has an effect; 1 a change removes or moves the
symptom; 2 bad usage or unreadable input; 3 not decided.
"""


@click.command("experiment", epilog=EPILOG)
@click.argument("paths", nargs=-1)
@click.option("--run", "run_command", metavar="CMD",
              help="Your consent to run the training again, in copies, with CMD.")
@click.option("--change", "changes", multiple=True, metavar="NAME[:k=v]", shell_complete=completing.changes,
              help="What to change, one at a time (several times: several experiments).")
@click.option("--patch", "patches", multiple=True, metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Your own edit as a unified diff, tried in the copy like any change, alone or first in a screen.")
@click.option("--screen", metavar="KINDS", is_flag=False, flag_value="settings,files,stages",
              help="Change everything that can be changed, one at a time: settings, files, stages (all three without "
                   "KINDS), or the places of the code (code), and try again what stands out. 600 s without --budget.")
@click.option("--plant", is_flag=True,
              help="Change single values of the data files instead, and see which rows of the batches change: whether "
                   "an input holds its own target, and whether input and target of a row arrive together.")
@click.option("--symptom", default="", help="What you saw, in your words: it says what is measured.")
@click.option("--outcome", "measured", metavar="KIND[:METRIC]",
              help="What is measured: nonfinite, error, exit, hang, level, fall, rise, gap, step-time, memory-growth.")
@click.option("--budget", type=click.FloatRange(min=1.0), metavar="SECONDS",
              help="For everything (default: for each change 300 s, and five times the run's own length).")
@click.option("--repeats", default=MOST_REPEATS, show_default=True, type=click.IntRange(1, MOST_REPEATS),
              help="Runs of either kind at most.")
@click.option("--seed-option", default="", metavar="--OPTION",
              help="The program's own option for its seed (default: every seed of the process is moved).")
@click.option("--resume", is_flag=True, help="Go on where an interrupted experiment ended.")
@click.option("--no-sandbox", is_flag=True, help="Run without the sandbox of this machine.")
@click.option("--list", "listed", is_flag=True, help="List what can be changed, and exit.")
@click.option("--out", type=str, help="Folder for the files (default: scratch/debug/experiments of the workspace).")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output, and nothing else there.")
def command(paths: tuple[str, ...], run_command: str | None, changes: tuple[str, ...], patches: tuple[str, ...],
            screen: str | None, plant: bool, symptom: str, measured: str | None, budget: float | None, repeats: int,
            seed_option: str, resume: bool, no_sandbox: bool, listed: bool, out: str | None, as_json: bool) -> int:
    """Prove a cause by changing one thing: the run of PATHS (its folder, its log) with and without it.

    Control, change and other seeds are run in copies that cannot write to your files, each as short as it shows the
    symptom, until it is decided.
    """
    if listed:
        return _list(as_json)
    from traindx.experiments import Request, run_experiments
    from traindx.model import Verify
    from traindx_tools.experiments.change import Change, parse_change

    if run_command is None:
        raise BadUsage("an experiment runs the training: give the command as your consent, such as --run 'python "
                       "train.py'")
    workspace, outcome = _asked(paths or (".",), symptom, measured)
    asked = (*(parse_change(c) for c in changes), *(Change("patch", {"file": str(Path(p).resolve())}) for p in patches))
    request = Request(workspace, run_command, asked, outcome, budget, repeats, seed_option, resume,
                      Path(out) if out is not None else None, Verify(sandbox=not no_sandbox), chosen=measured is None,
                      symptom=symptom)
    status = Status()
    if not plant:
        status.say(f"measured: {outcome.said} ({outcome})")
    elif asked or screen is not None:
        raise BadUsage("--plant makes its own runs: give it without --change, --patch and --screen")
    try:
        if plant:
            return _planted(request, status, as_json)
        if screen is not None:
            return _screened(request, screen, status, as_json)
        answer = run_experiments(request, status.say, status.progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what was finished is kept: the same command with --resume goes on") from None
    finally:
        status.clear()
    if as_json:
        click.echo(json.dumps(answer.to_json(), indent=1, allow_nan=False))
    else:
        _print(answer)
    return answer.exit_code


def _screened(request: Request, screen: str, status: Status, as_json: bool) -> int:
    """Everything changed, one at a time."""
    from traindx.safe_text import block, line
    from traindx.screening import run_screen
    from traindx_tools.experiments.screening.telling import lines

    kinds = tuple(k.strip() for k in screen.split(",") if k.strip())
    answer = run_screen(request, kinds, status.say, status.progress)
    status.clear()
    if as_json:
        click.echo(json.dumps(answer.to_json(), indent=1))
        return answer.exit_code
    for text in lines(answer.screened):
        click.echo(block(text.replace("\n", " ")))
    click.echo(f"  {answer.page}")
    for typed in answer.rest:
        click.echo(f"  next: {line(typed)}")
    return answer.exit_code


def _planted(request: Request, status: Status, as_json: bool) -> int:
    """Values planted in the data files."""
    from traindx.planting import run_planting
    from traindx.safe_text import block
    from traindx_tools.experiments.planting.telling import lines

    answer = run_planting(request, status.say)
    status.clear()
    if as_json:
        click.echo(json.dumps(answer.to_json(), indent=1))
        return answer.exit_code
    for text in lines(answer.study):
        click.echo(block(text.replace("\n", " ")))
    return answer.exit_code


def _asked(paths: tuple[str, ...], symptom: str, measured: str | None) -> tuple[Path, Outcome]:
    """The workspace, and what is measured: what was named, else what the words or the log say."""
    from traindx.places import common_root
    from traindx_tools.experiments.choosing import chosen_for
    from traindx_tools.experiments.outcome import parse_outcome
    from traindx_tools.live.reading import workspace_of

    named = parse_outcome(measured) if measured is not None else None
    missing = next((p for p in paths if not Path(p).exists()), None)
    if missing is not None:
        raise BadUsage(f"there is no file or folder {missing}: give the folder of the training code, or its log")
    workspace = (workspace_of(paths) or common_root(paths)).resolve()
    return workspace, named if named is not None else chosen_for(paths, symptom)


def _list(as_json: bool) -> int:
    from traindx_tools.experiments.interventions import example, interventions

    known = interventions()
    if as_json:
        click.echo(json.dumps([{"name": i.name, "about": i.about, "example": example(i), "shows": i.shows}
                               for i in known.values()], indent=1))
        return 0
    width = max(len(n) for n in known)
    for one in known.values():
        click.echo(f"{one.name:<{width}}  {one.about}")
    return 0


def _print(answer: Answer) -> None:
    from traindx.safe_text import block, line
    from traindx_tools.experiments.table import lines

    for result in answer.results:
        for text in lines(result):
            click.echo(block(text.replace("\n", " ")))
        click.echo(f"  {answer.request.folder / result.id}.md")
    for typed in answer.rest:
        click.echo(f"  next: {line(typed)}")


class Status:
    """What is being done: lines on standard error, and on a terminal one line that is drawn over."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self._drawn = False

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        click.echo(f"traindx: {text}", err=True)

    def progress(self, text: str) -> None:
        """What goes on now; nothing in a pipe."""
        if self.terminal:
            click.echo(f"\r\x1b[K{text[:columns(sys.stderr) - 1]}", err=True, nl=False, color=True)
            self._drawn = True

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
            self._drawn = False
