"""`traindx diagnose`: read artifacts, name the cause."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx.abandoned import temporary
from traindx.disagreeing import not_options, written_down
from traindx.follow.command import asked_to_follow, follow_options
from traindx.naming import name_option, names_of
from traindx.offered import typed, typed_again
from traindx.scoping import asked_of, scope_options, which_option
from traindx_tools import unlinked
from traindx_tools.errors import BadUsage, UnreadableInput

if TYPE_CHECKING:
    from traindx.context import ContextPackage
    from traindx.diagnose import Report
    from traindx_tools.sources import Noting

STDIN_LIMIT = 256 * 2**20
"""Bytes of standard input that are read."""


CONTEXT_LIMIT = 64 * 2**20
"""Bytes of a context package that are read."""


@dataclass(frozen=True)
class Request:
    """What is asked: paths, what the person saw, and what was announced but is not there."""

    paths: tuple[str, ...]
    symptom: str
    missing: tuple[str, ...] = ()
    seconds: float | None = None
    root: Path | None = None
    """The folder that places are named from and that --run copies, where it does not follow from the paths."""
    subject: str | None = None
    """The paths as a person would type them, where some of what is read is the text of a context package."""


def read_context(path: str) -> ContextPackage:
    """The context package in a file. Raises UnreadableInput that says which field is wrong."""
    from pydantic import ValidationError

    from traindx.context import ContextPackage

    try:
        return ContextPackage.model_validate_json(_package(Path(path)))
    except OSError as error:
        raise UnreadableInput(f"the context package {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"]) or "the file"
        raise UnreadableInput(f"the context package {path} is not as expected: {where}: {first['msg']}. Expected "
                              '{"task", "artifacts", "symptoms", "constraints"}, see docs/python.md.') from error


def _package(path: Path) -> bytes:
    """The bytes of the file; a pipe or a device would be waited for, and has no end. Raises OSError."""
    if path.exists() and not path.is_file():
        raise UnreadableInput(f"the context package {path} is no file: give a JSON file")
    with path.open("rb") as file:
        data = file.read(CONTEXT_LIMIT + 1)
    if len(data) > CONTEXT_LIMIT:
        raise UnreadableInput(f"the context package {path} is larger than {CONTEXT_LIMIT // 2**20} MiB: name logs by "
                              "their path instead of pasting them")
    return data


def request(paths: tuple[str, ...], symptom: str, context: str | None, scratch: Path) -> Request:
    """Joins the arguments with a context package."""
    if context is None:
        return Request(paths, symptom)
    from traindx.handed_over import hand_over
    from traindx.places import common_root

    package = read_context(context)
    home = Path(context).resolve().parent
    given = hand_over(package.artifacts, home, scratch)
    words = " ".join(w for w in (symptom, package.task, *package.symptoms) if w)
    seconds = package.constraints.max_analysis_time
    lasting = (*paths, *(_from_here(p) for p in given.paths if not p.is_relative_to(scratch)))
    return Request((*paths, *(str(p) for p in given.paths)), words, given.missing, seconds,
                   common_root(lasting or [home]), typed(lasting))


def _from_here(path: Path) -> str:
    """As seen from the current directory where it lies below it."""
    here = Path.cwd()
    below = path.is_relative_to(here) and here != Path(here.anchor)
    return str(path.relative_to(here)) if below else str(path)


def default_folder() -> Path:
    """A new folder for this diagnosis below scratch/debug of the current directory."""
    return Path("scratch") / "debug" / f"diagnose-{datetime.now():%Y%m%d-%H%M%S-%f}"


def _answered(report: Report) -> None:
    """The answer, then its pictures and its page: those take as long as the reading, and nobody waits for them."""
    folder = default_folder()
    try:
        unlinked.made(folder)
    except OSError as error:
        _unwritten(error, folder)
        _print(report, {})
        return
    _print(report, {"report": str(folder / "report.html")})
    try:
        report.write(folder)
    except OSError as error:
        _unwritten(error, folder, "the report was not written whole")


def _print(report: Report, files: dict[str, str], verbose: bool = False) -> None:
    from traindx.page import OPTION, coloured, columns

    click.echo(report.terminal(files, colour=coloured(sys.stdout), width=columns(sys.stdout), verbose=verbose,
                               more=OPTION), nl=False)
    sys.stdout.flush()


def _unwritten(error: OSError, folder: Path, what: str = "no files were written") -> None:
    _say(f"{what} ({error.strerror}: {error.filename or folder}); --out names another place")


def _write(report: Report, out: str | None, as_json: bool) -> dict[str, str]:
    """The files of the report. With --json only where --out asks for them; without a writable folder none."""
    if out is None and as_json:
        return {}
    folder = Path(out) if out is not None else default_folder()
    try:
        files = report.write(folder)
    except OSError as error:
        if out is not None:
            raise UnreadableInput(f"cannot write to {error.filename or folder}: {error.strerror}. Name another with "
                                  "--out") from error
        _unwritten(error, folder)
        return {}
    return files


@contextlib.contextmanager
def _working(run_command: str | None) -> Iterator[Callable[[str], None]]:
    """The line about what goes on; Ctrl-C says how far it was, after how long, and what it leaves behind: nothing."""
    from traindx.live_view import working_on
    from traindx_tools.on_logs import progress

    begun, far_as = time.monotonic(), ["reading"]
    try:
        with working_on("reading") as show:
            def at(said: str) -> None:
                far_as[0] = said
                show(said)

            with progress.told(lambda *far: at(progress.in_words(*far))):
                yield at
    except KeyboardInterrupt:
        copy = ", what ran in the copy is gone" if run_command is not None else ""
        raise KeyboardInterrupt(f"after {time.monotonic() - begun:.0f} s, while {far_as[0]}",
                                f"nothing was changed{copy}; the same command starts it again") from None


def _written_down(asked: Request, disagreed: tuple[str, ...], because: str) -> None:
    """What the person disagrees with, in the file that this and every later run reads."""
    from traindx.places import common_root
    from traindx_tools.live.reading import workspace_of

    told = written_down(disagreed, because, asked.root or workspace_of(asked.paths) or common_root(asked.paths))
    if told:
        _say(told)


def _noted(noting: Noting, report: Report) -> None:
    """The note at the tracker; a refusal there does not cost the diagnosis."""
    from traindx.noted import note_of

    try:
        noting.write(*note_of(report))
        _say(f"the verdict was added to the notes of {noting.run}")
    except UnreadableInput as refused:
        _say(f"no note was written: {refused}")


def _say(text: str) -> None:
    click.echo(f"traindx: {text}", err=True)


@click.command("diagnose")
@click.argument("paths", nargs=-1)
@click.option("--symptom", default="", help="What you saw, in your words.")
@click.option("--context", type=str, help="A context package (JSON) with artifacts, symptoms and constraints.")
@click.option("--run", "run_command", help="Your consent to run the training again, in a copy, with CMD.",
              metavar="CMD")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds that --run may take.")
@click.option("--budget", type=click.FloatRange(min=0), metavar="SECONDS",
              help="Seconds of experiments after --run, where it names no cause (default: five times the run's length, "
                   "a minute at least and five at most; 0: none). What it left out is said, with the command for it.")
@click.option("--against", multiple=True, metavar="GOOD",
              help="A run that works: metrics, settings, versions and code are compared with it. May be repeated for "
                   "the paths of that one run.")
@name_option
@scope_options
@which_option
@not_options
@click.option("--cluster", metavar="ADDRESS", help="A Ray cluster (auto, ray://HOST:10001) that reads the logs of many "
              "ranks, in place of processes on this machine.")
@click.option("--out", type=str, help="Folder for the files (default: scratch/debug/diagnose-TIME).")
@click.option("--note", is_flag=True, help="Write the verdict and the findings of medium and above to the named run "
              "(wandb: notes and tags, mlflow: tags), behind what stands there. Never without this.")
@follow_options
@click.option("-v", "--verbose", is_flag=True,
              help="Print everything: what was read, the timeline, every hypothesis, the diagnosis with its questions.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output, and nothing else there.")
def command(paths: tuple[str, ...], symptom: str, context: str | None, run_command: str | None, timeout: float,
            budget: float | None, against: tuple[str, ...], own_names: tuple[str, ...], forms: tuple[str, ...],
            entry: tuple[str, ...], everything: bool, which: int | None, disagreed: tuple[str, ...], because: str,
            cluster: str | None, out: str | None, note: bool, follow: bool, every: float, notify: bool,
            on_finding: str | None, verbose: bool, as_json: bool) -> int:
    """Read PATHS (files, folders, globs, URLs, wandb:ENTITY/PROJECT/RUN, mlflow:RUN, - for standard input) and name the
    cause.

    Read-only unless --run is given, and then only a copy is run. Files go to scratch/debug.
    """
    from traindx.diagnose import diagnose
    from traindx.offering import accepted_run
    from traindx_tools.sources import noting_of, resolved

    if run_command is not None and (not run_command.strip() or not 0 < timeout < float("inf")):
        raise BadUsage("--run needs a command, and --timeout a number of seconds above 0")
    if not paths and context is None:
        raise BadUsage("give a log file, a folder, a glob or - for standard input; `traindx diagnose --help` shows how")
    following = asked_to_follow(follow, every, notify, on_finding)
    if following is not None:
        from traindx.follow.command import follow as followed

        refused = {"--run": run_command is not None, "--against": against, "--context": context is not None,
                   "--note": note, "--out": out is not None, "--entry": entry, "--all": everything, "--not": disagreed}
        return followed(following, paths, refused, as_json, symptom=symptom, names=names_of(own_names), lines=forms,
                        which=which, cluster=cluster)
    again = None
    with temporary("traindx-diagnose-") as scratch:
        noting = noting_of(paths) if note else None
        asked = request(resolved(paths), symptom, context, scratch / "context")
        if context is None:
            asked = replace(asked, subject=typed_again(paths))
        if not asked.paths:
            raise UnreadableInput(f"nothing that {context} names could be found: {', '.join(asked.missing)}. Give "
                                  "paths from the folder of the context package, or the text itself")
        _written_down(asked, disagreed, because)
        stdin = sys.stdin.buffer.read(STDIN_LIMIT) if "-" in asked.paths else None
        with _working(run_command) as at:
            report = diagnose(asked.paths, symptom=asked.symptom, stdin=stdin, missing=asked.missing, root=asked.root,
                              names=names_of(own_names), lines=forms, cluster=cluster,
                              asked=asked_of(entry, everything, run_command, which=which))
            missing = tuple(m for m in asked.missing if m != "model_code" or not report.places.code)
            subject = report.subject if asked.subject is None else asked.subject
            report = replace(report, subject=subject, missing=missing, unnamed=scratch / "context")
            if run_command is not None:
                from traindx.project_file import read_project_file
                from traindx.rerun import with_rerun
                from traindx.sandbox import find_sandbox
                from traindx.terms import runnable

                runnable(run_command, report.places.root, "--run")
                unprotected = find_sandbox().warning
                if unprotected:
                    _say(unprotected)
                at(f"running it in a {'' if unprotected else 'protected '}copy: {run_command}")
                report = with_rerun(report, run_command, report.places.root, scratch / "rerun", timeout,
                                    budget if budget is not None else read_project_file(report.places.root).budget,
                                    _say)
            if against:
                from traindx.against import with_comparison

                report = with_comparison(report, against)
            first = not (as_json or verbose or out)
            files = {} if first else _write(report, out, as_json)
            if noting is not None:
                _noted(noting, report)
        if first:
            _answered(report)
        elif as_json:
            click.echo(json.dumps(report.to_json(files), indent=1, allow_nan=False))
        else:
            _print(report, files, verbose)
        if not as_json and run_command is None and context is None and "-" not in paths and not against:
            again = accepted_run(report)
    if again is not None:
        return int(click.get_current_context().invoke(command, **{
            **click.get_current_context().params, "run_command": again}))
    return report.exit_code
