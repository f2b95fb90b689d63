"""`traindx run`: a training command with instruments attached, and no change to its code."""

from __future__ import annotations

import errno
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx import completing
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.unlinked import made

if TYPE_CHECKING:
    from traindx_tools.live.reading import LiveRun

_KILLED = range(129, 256)
"""Exit codes of a command that a signal ended."""

_CLOSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""A folder that may not be written."""

HELP_OF_CODES = """\b
The exit code is the command's own (128 + N where signal N ended it), 127 where it cannot be started.
Findings do not change it; `traindx diagnose RUNDIR` exits 1 where they prove a cause.
"""


@click.command("run", context_settings={"allow_interspersed_args": False}, epilog=HELP_OF_CODES)
@click.option("--probe", "probes", multiple=True, shell_complete=completing.probes,
              help="A probe beside the always-on ones (several times; 'all').")
@click.option("--only", is_flag=True, help="Only the probes that are named, without the always-on ones.")
@click.option("--list", "listed", is_flag=True, help="List the probes and exit.")
@click.option("--out", type=str, help="Folder for the files (default: traindx-run/TIME; below "
              "scratch/debug/probes where the project may not be written).")
@click.option("--second-pass", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
              help="Run the command again with tracing where a value stopped being finite; auto: after runs of up to "
                   "10 minutes.")
@click.option("--snapshot", is_flag=True, help="Keep each step, so that one that fails or jumps is run again at once: "
                                               "traced, and with one change at a time; and on disk (steps/), for "
                                               "`traindx replay`. Costs a copy of parameters, gradients and optimizer "
                                               "state.")
@click.option("--keep-mib", type=click.IntRange(min=1), metavar="N", help="With --snapshot: a step that goes wrong is "
              "kept on disk for `traindx replay` where it takes at most N MiB (default: 2048).")
@click.option("--origin", type=str, metavar="RUNDIR", help="Only that second pass, for a run that has ended.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(probes: tuple[str, ...], only: bool, listed: bool, out: str | None, second_pass: str, snapshot: bool,
            keep_mib: int | None, origin: str | None, words: tuple[str, ...]) -> int:
    """Run CMD with instruments attached: traindx run [OPTIONS] -- CMD ...

    Works with plain loops, torchrun, accelerate, Lightning, HF Trainer and JAX. Results stay bitwise the same.
    Ctrl-C and SIGTERM end CMD as well; a `kill -9` of traindx alone does not: CMD trains on to its own end.
    """
    if listed:
        return _list()
    if origin is not None:
        return _origin(Path(origin))
    if not words:
        raise BadUsage("give the training command after --, such as: traindx run -- python train.py")
    from traindx_tools.live.runner import Job, run

    if out is not None and Path(out).is_dir() and any(Path(out).iterdir()):
        raise BadUsage(f"{out} is not empty: name another folder with --out, so that two runs do not mix")
    names = (*(() if only else ("always",)), *probes, *(("snapshot",) if snapshot else ()))
    _check(names)
    if keep_mib is not None and not snapshot:
        raise BadUsage("--keep-mib says how large a kept step may be: give --snapshot, which keeps steps, as well")
    folder = _made(Path(out)) if out is not None else _default()
    options = {} if keep_mib is None else {"step_bytes": keep_mib * 2**20}
    try:
        result = run(Job(words, folder, names, second_pass, options=options))
    except OSError as error:
        raise _no_room(folder, error) from None
    if _started(words[0], result.exit_code):
        _block(folder, result.seen, result.remarks)
    return result.exit_code


def _started(program: str, code: int) -> bool:
    """Whether the command could be started at all; where it could not, the runner has said so and why."""
    return code not in (126, 127) or shutil.which(program) is not None


def _made(folder: Path) -> Path:
    """The folder of the records, made before the command starts. Raises BadUsage where it cannot be."""
    try:
        return made(folder)
    except OSError as error:
        raise _no_room(folder, error) from error


def _default() -> Path:
    """`traindx-run/TIME`; below scratch/debug/probes where the project may not be written, as behind a closed gate."""
    from traindx_tools.live.folders import new_run_folder, probes_folder

    try:
        return _made(new_run_folder())
    except BadUsage as refused:
        aside = probes_folder(Path.cwd())
        if not isinstance(refused.__cause__, OSError) or refused.__cause__.errno not in _CLOSED or aside is None:
            raise
        return _made(new_run_folder(aside))


def _no_room(folder: Path, error: OSError) -> BadUsage:
    """What is said where the folder cannot be written before the command starts."""
    return BadUsage(f"the records cannot be kept in {folder}: {error.strerror or error}. The command was not "
                    "started; name a folder that can be written with --out FOLDER")


def _check(names: tuple[str, ...]) -> None:
    """Raises BadUsage for a probe that no framework has which is installed here."""
    from traindx_tools.live.probes import known_names

    if set(names) <= {"always", "all", "snapshot"}:
        return
    known = [name for name, _, _ in known_names()]
    unknown = [n for n in names if n not in (*known, "always", "all")]
    if known and unknown:
        raise BadUsage(f"there is no probe {unknown[0]!r}. Known are: {', '.join(known)}; or always, all.")


def _list() -> int:
    from traindx_tools.live.probes import known_names

    for name, about, always in known_names():
        click.echo(f"{name:<22}{'always on  ' if always else '           '}{about}")
    return 0


def _origin(folder: Path) -> int:
    import os

    from traindx_tools.live.reading import read_folder
    from traindx_tools.live.runner import Job, search_origin, tripped

    seen = read_folder(folder)
    words = tuple(str(w) for w in seen.run.get("command", ()))
    if not words:
        raise UnreadableInput(f"{folder} is no folder of `traindx run`: it holds no run.json with the command")
    if not tripped(seen.findings):
        raise BadUsage(f"in {folder} no loss or gradient stopped being finite: there is no origin to search")
    remarks = search_origin(Job(words, folder), dict(os.environ))
    _block(folder, read_folder(folder), remarks)
    return 0


def _block(folder: Path, seen: LiveRun, remarks: tuple[str, ...]) -> None:
    """The summary on standard error: what was seen and the command to type next."""
    from traindx.safe_text import line
    from traindx_tools.finding import Severity

    told = sorted((f for f in seen.findings if f.severity is not Severity.INFO),
                  key=lambda f: (f.rule not in ("T101", "J101"), -f.severity.rank))
    rows = [f"  {f.rule} {f.severity.value}: {line(f.statement)}" for f in told[:8]]
    rows += [f"  ... and {len(told) - 8} more"] if len(told) > 8 else []
    rows += [f"  note: {line(r)}" for r in remarks]
    where = line(folder)
    counted = " (steps are optimizer steps, counted from 1)" if any(" step " in r for r in rows) else ""
    found = f"traindx: {len(told)} finding{'s' * (len(told) != 1)} in {where}{counted}"
    head = found if told else _nothing(seen, where)
    end = [f"  next: traindx diagnose {shlex.quote(str(folder))}"] if told else []
    click.echo("\n".join([head, *rows, *end]), err=True)


def _nothing(seen: LiveRun, folder: str) -> str:
    """No finding: either what was observed is clean, or nothing was observed at all, which says nothing of the run."""
    code = seen.run.get("exit_code")
    ended = f"the command ended with exit code {code}" if code else ""
    if not any(f.last_step is not None or f.findings or f.ended in (None, "ok") for f in seen.files):
        why = ended or ("no Python process trained with torch or JAX under the instruments (one that is started with "
                        "-I, -E or -S, or sets PYTHONPATH anew, cannot be attached to)")
        holds = "the traceback" if seen.files else "no records"
        return f"traindx: nothing was observed: {why}; {folder} holds {holds}"
    last = max((f.last_step for f in seen.files if f.last_step is not None), default=None)
    if code and any(f.ended is None for f in seen.files):
        killed = code in _KILLED
        missing = " (up to a second before a kill may be missing)" if killed else ", and what came after is not known"
        none = "it was killed before the first one was written" if killed else "what came is not known"
        to = f"which end with step {last:,.0f}{missing}" if last else f"which hold no step: {none}"
        return f"traindx: nothing wrong was seen in the records in {folder}, {to}; {ended}"
    until = f" up to step {last:,.0f}" if last is not None else (
        " in what was computed, but no loss, gradient norm or other number was recorded: whether it learns was not "
        "judged")
    return f"traindx: nothing wrong was seen{until}{', but ' + ended if ended else ''}; the records are in {folder}"
