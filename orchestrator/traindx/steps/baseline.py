"""The command on the unfixed code, before the fix is judged: what a verification compares with.

It runs in a protected copy of the workspace that holds the changed files as they were, in the same environment. Its
result is kept below `scratch/debug/baselines`, by the content of the workspace and the command, so that a second fix
of the same code, or a session that was killed, runs nothing twice. It is repeated where the promised metric was
measured and the runs together stay within `REPEAT_SECONDS`: two that agree bit for bit have no spread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx.abandoned import remove_halves
from traindx.as_known import applied_fix
from traindx.bounded_output import judged_output
from traindx.durable import write_state
from traindx.executed import executed, watched, watching
from traindx.hindrances import Change, hindrance
from traindx.model import Verify
from traindx.notices import Notice
from traindx.patching import PatchRefused
from traindx.protected_copy import SOURCE_ENDINGS, CopyRefused, copy_into, in_copy, workspace_files
from traindx.results import Baseline, BaselineRun
from traindx.sandbox import Sandbox
from traindx.steps.fixing import changes_of
from traindx.steps.old_run import old_run, rewritten_in, run_from_json, run_to_json, sha256
from traindx.steps.written import BASELINES, REWRITTEN, baseline_place, code_below, settle
from traindx.turn import HaltRecorded, Interruption, Turn, in_thread
from traindx.verify import (
    Outcome,
    clean_environment,
    prints_nonfinite,
    read_outcome,
    specification,
    supervised,
)
from traindx.workspace import printable

REPEAT_SECONDS = 60.0
"""For all runs of the unfixed code together, when it is run more than once."""
RUNS_AT_MOST = 3
LOST_RUNS_AT_MOST = 3

SOURCES = "sources.json"
"""The code and settings that the copy held before the command ran in it, by name, with hash and time."""

_SAME_MACHINE = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_VISIBLE_DEVICES")
"""Variables that may change what a command does: a kept result counts where they are the same."""


@dataclass(frozen=True)
class _Place:
    """Where a baseline lives, and what makes it."""

    folder: Path
    contents: Mapping[str, bytes | None]
    """The changed files, as they were."""


def with_fixed_seed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of both sides: Python's hashes are in the same order in each run."""
    return {"PYTHONHASHSEED": "0", **environment}


async def baseline(turn: Turn, how: Verify, sandbox: Sandbox, wants_more: Callable[[Baseline], bool]) -> Baseline:
    """The unfixed code under the same command, or why there is none.

    `wants_more` says, from the runs so far, whether a further one would tell more.
    """
    if how.baseline_run:
        return await in_thread(_given, turn, how)
    if not how.command:
        return Baseline((BaselineRun(old_run(turn)),), said="the run that was diagnosed, as no command was given")
    if not how.baseline:
        return Baseline(skipped="not run, as you wished (--no-baseline): compared with the run that was diagnosed")
    place = await in_thread(_place, turn, how)
    if isinstance(place, str):
        return Baseline(skipped=place)
    found = Baseline()
    while len(found.runs) < RUNS_AT_MOST:
        made = await _one(turn, how, sandbox, place, len(found.runs) + 1)
        if isinstance(made, str):
            return found if found.runs else Baseline(skipped=made)
        found = replace(found, runs=(*found.runs, made))
        spent = sum(r.seconds for r in found.runs)
        if spent + made.seconds > REPEAT_SECONDS or not wants_more(found):
            break
    return replace(found, budget=REPEAT_SECONDS)


def _given(turn: Turn, how: Verify) -> Baseline:
    """The run that the person names as one of the same command on the unfixed code."""
    paths = [turn.workspace / p for p in how.baseline_run]
    absent = [str(p) for p in paths if not p.exists()]
    if absent:
        raise Interruption(f"the baseline {', '.join(absent)} is not there: name what the command wrote on the unfixed "
                           "code, or leave it out and the command is run there")
    logs = [p for p in paths if p.is_file()]
    run = BaselineRun(turn.examine(paths), None, any(prints_nonfinite(p) for p in logs))
    return Baseline((run,), said=f"the unfixed code: {', '.join(how.baseline_run)}, as you said, not run again")


def _place(turn: Turn, how: Verify) -> _Place | str:
    """Where the baseline of what was verified here is kept; a sentence where the old content is gone."""
    states = applied_fix(turn.session, turn.journal.records)
    try:
        contents = {s.path: None if s.before is None else turn.store.get(s.before) for s in states}
    except PatchRefused as error:
        return f"the unfixed code could not be put together: {error}"
    name = baseline_place(turn)
    begun = turn.journal.begun(name)
    if begun is None or begun["command"] != _plain(how):
        key = _place_key(turn, how, {s.path: f"sha {s.before}" for s in states})
        turn.journal.begin(name, folder=key, command=_plain(how))  # a resume finds it after files were written
    else:
        key = str(begun["folder"])
    return _Place(turn.workspace / BASELINES / key, contents)


def _plain(how: Verify) -> list[str]:
    return [how.command] if isinstance(how.command, str) else list(how.command or ())


def _place_key(turn: Turn, how: Verify, before: Mapping[str, str]) -> str:
    files = {**turn.contents(), **before}
    written = {w for r in turn.journal.records if r.kind == "note" for w in r.body.get("verification_wrote", ())}
    told = {
        "files": sorted((p, sig) for p, sig in files.items() if p not in written),
        "command": how.command, "new_run": how.new_run, "keep_env": how.keep_env, "timeout": how.timeout,
        "memory": how.memory_mib, "sandbox": how.sandbox, "machine": platform.node(),
        "environment": {name: os.environ.get(name, "") for name in _SAME_MACHINE},
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]


async def _one(turn: Turn, how: Verify, sandbox: Sandbox, place: _Place, number: int) -> BaselineRun | str:
    """One run, made now or found; a sentence where it cannot be made."""
    for again in range(LOST_RUNS_AT_MOST + 1):
        folder = place.folder / (f"run-{number}-again-{again}" if again else f"run-{number}")
        kept = await in_thread(_kept, folder)
        if kept is not None:
            await in_thread(remove_halves, folder)
            return kept
        key = f"baseline-{place.folder.name}-{folder.name}"
        if turn.journal.begun(key) is None:
            turn.journal.begin(key, command=how.command)
        turn.hear(Notice("said", text=f"running the command on the unfixed code, in a copy ({number})"))
        outcome = await _run(turn, how, sandbox, place, folder)
        if isinstance(outcome, str):
            return outcome
        await in_thread(_stop_if_deleted, folder)
        if not outcome.cancelled:
            made = await in_thread(_read, turn, how, folder, outcome)
            why = await in_thread(_hindered, turn, how, made, folder)
            if why is not None:  # not kept: when the machine is put right, it is run again
                await in_thread(shutil.rmtree, folder, True)
                return f"the unfixed code could not be run: {why}"
            await in_thread(_keep, folder, made)
            await in_thread(remove_halves, folder)
            if turn.journal.finished(key) is None:
                turn.journal.finish(key, exit_code=outcome.exit_code, seconds=outcome.seconds)
            return made
        await in_thread(shutil.rmtree, folder / "copy", True)
    raise Interruption("the run on the unfixed code was cut off several times: resume to try it again")


async def _run(turn: Turn, how: Verify, sandbox: Sandbox, place: _Place, folder: Path) -> Outcome | str:
    copy = folder / "copy"
    if not (folder / "spec.json").exists():
        try:
            await in_thread(_copied, turn.workspace, copy, place, sandbox)
            await in_thread(_stop_if_mixed, turn, folder)
        except (CopyRefused, OSError) as error:
            await in_thread(shutil.rmtree, folder, True)
            return f"the unfixed code could not be run: {error}"
    assert how.command is not None, "a baseline is run by a command"
    moved = how.model_copy(update={"command": in_copy(how.command, turn.workspace, copy.resolve())})
    notes = folder / "lines"
    environment = watching(notes, watched(_changes(turn), turn.workspace), {
        **with_fixed_seed(clean_environment(os.environ, how.keep_env)), "PWD": str(copy.resolve())})
    spec = specification(moved, copy, sandbox, [notes] if notes.is_dir() else [])
    return await supervised(folder, spec, environment)


def _changes(turn: Turn) -> tuple[Change, ...]:
    return changes_of(turn, turn.session.attempts[-1].number)


def _copied(workspace: Path, copy: Path, place: _Place, sandbox: Sandbox) -> None:
    """The copy, whole or not at all: one that a kill left half made is made anew."""
    part = copy.with_name("copy.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(copy, ignore_errors=True)
    copy_into(workspace, part, place.contents, links=sandbox.program is not None)
    write_state(copy.with_name(SOURCES), json.dumps(_code_in(part)).encode())
    part.rename(copy)


def _code_in(copy: Path) -> dict[str, list[Any]]:
    """By name the hash, and when it was written: a snapshot of the code that is the same once more is written too."""
    files = (n for n in sorted(code_below(copy, workspace_files(copy))) if (copy / n).is_file())
    return {n: [sha256(copy / n), (copy / n).stat().st_ctime_ns] for n in files}


def _stop_if_mixed(turn: Turn, folder: Path) -> None:
    """What changed while the copy was made may be in it: it is kept under the name of other content."""
    try:
        settle(turn)
    except HaltRecorded:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _deleted(folder: Path) -> list[str]:
    """Source files that the command took out of its copy; kept, as the copy itself is removed after that."""
    kept = folder / "deleted.json"
    if not kept.exists():
        names = json.loads((folder / SOURCES).read_text()) if (folder / SOURCES).exists() else {}
        gone = [n for n in names if Path(n).suffix.lower() in SOURCE_ENDINGS
                and not os.path.lexists(folder / "copy" / n)]
        now = _code_in(folder / "copy")
        known = names if isinstance(names, dict) else now  # an earlier version kept the names alone
        wrote = {n: held[0] for n, held in now.items() if held != known.get(n)} if known else {}
        write_state(folder / REWRITTEN, json.dumps(wrote).encode())
        write_state(kept, json.dumps(gone).encode())
    shown: list[str] = json.loads(kept.read_text())
    return shown


def _stop_if_deleted(folder: Path) -> None:
    """The command would do in the workspace what it did in the copy. Raises Interruption, on a resume as well."""
    gone = _deleted(folder)
    if gone:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shown = ", ".join(map(printable, gone[:5])) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
        raise Interruption(f"the command deletes source files: in the copy of the unfixed code {shown} is gone after "
                           "it. It was not run in the workspace; give one that deletes none (--verify CMD)")


def _read(turn: Turn, how: Verify, folder: Path, outcome: Outcome) -> BaselineRun:
    """Read what it printed and wrote."""
    copy = folder / "copy"
    written = [copy / p for p in how.new_run if (copy / p).exists()]
    output = judged_output(folder)
    run = turn.examine([output, *written, *rewritten_in(turn, copy)])
    return BaselineRun(run, outcome, prints_nonfinite(output))


def _hindered(turn: Turn, how: Verify, made: BaselineRun, folder: Path) -> str | None:
    """Why it is no run of the unfixed code: the machine ended it, or it took the workspace's own, changed file."""
    assert turn.session.diagnosis is not None, "a fix follows a diagnosis"
    assert made.outcome is not None, "it was run"
    if executed(_changes(turn), turn.workspace, [folder / "lines"]).state == "yes":
        return "the program does not take the changed file from the copy, but from the workspace itself"
    return hindrance(turn.session.diagnosis, how, made.outcome, made.run, (), folder / "copy")


def _keep(folder: Path, made: BaselineRun) -> None:
    """What was read of it, durably; the copy is not needed any more."""
    told = {"run": run_to_json(made.run), "nonfinite": made.nonfinite}
    write_state(folder / "run.json", json.dumps(told).encode())
    shutil.rmtree(folder / "copy", ignore_errors=True)


def _kept(folder: Path) -> BaselineRun | None:
    """A run that was made and read before."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        data: dict[str, Any] = json.loads((folder / "run.json").read_text())
        shutil.rmtree(folder / "copy", ignore_errors=True)  # a kill may have left it
        return BaselineRun(run_from_json(data["run"]), read_outcome(folder), bool(data["nonfinite"]))
    return None
