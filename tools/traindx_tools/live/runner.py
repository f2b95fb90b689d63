"""`traindx run`: a command with the instruments attached, and a second pass that traces the step that went wrong.

The first pass is the user's own run: its output, exit code and signals are untouched. Where a loss or gradient stopped
being finite in it, the command is run again with tracing armed a few backward passes before; that pass ends as soon as
every process has named the origin. Where the second run takes another course, a third one traces from further back.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx_tools.finding import Finding, Severity
from traindx_tools.live.launch import launch, launch_until
from traindx_tools.live.reading import RUN_FILE, LiveRun, read_folder
from traindx_tools.live.settings import FILE_BOUND, ORIGIN, Settings, environment_for

MARGIN = 2
"""Backward passes that are traced before the one in which the value was seen."""
PASSES = 2
"""Passes with tracing at most: the second one begins far earlier."""
LONG_RUN = 600.0
"""Seconds of a first pass from which the second pass needs to be asked for: it takes as long again."""
GRACE = 3.0
"""Seconds that other ranks get to say what they saw after the first one has."""
NAMED = ("T101", "J101")
"""Rules that name an origin."""
CAME_IN = ("outside", "batch")
"""The kinds of origins that were there before the first traced step: data, or what the program computed from it."""
EAGER = {"TORCHDYNAMO_DISABLE": "1", "TORCH_COMPILE_DISABLE": "1", "PYTHONUNBUFFERED": "1"}
"""Under tracing compiled regions run eagerly: an operation inside a fused kernel cannot be seen."""

OUTPUT = ".output.log"
"""What a pass with tracing prints; hidden, so that it is not read as a second log of the run."""


@dataclass(frozen=True)
class Job:
    """What is run and how. `second_pass`: "auto", "always" or "never"."""

    command: tuple[str, ...]
    folder: Path
    probes: tuple[str, ...] = ("always",)
    second_pass: str = "auto"
    bound: int = FILE_BOUND
    seconds: float = 24 * 3600.0
    """Seconds that one pass with tracing may take."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> Settings:
        """What the processes of the first pass are told."""
        options = {**self.options, "searched": self.second_pass != "never"}
        return Settings(str(self.folder.resolve()), self.probes, bound=self.bound, options=options)

    def tracing(self, number: int, arm: int, seen: Sequence[Finding] = ()) -> Settings:
        """What the processes of a pass with tracing are told: `arm` is the backward pass from which they trace.

        Where a GradScaler skipped step after step, scaled gradients are judged too: else their overflow is no fault.
        """
        scaled = any(f.rule == "T102" and f.measured.get("what") == "skipped" for f in seen)
        folder = self.folder.resolve() / f"origin{number}"
        return Settings(str(folder), (), ORIGIN, self.bound, {**self.options, "arm": arm, "scaled_gradients": scaled})


@dataclass(frozen=True)
class Result:
    """How it ended and what was seen."""

    exit_code: int
    seen: LiveRun
    remarks: tuple[str, ...] = ()


def run(job: Job, environment: Mapping[str, str] | None = None) -> Result:
    """Runs the command in the foreground, and once more where that tells the origin.

    Raises OSError before the command is started; what fails after its end is a remark, and its exit code stays.
    """
    here = dict(os.environ if environment is None else environment)
    job.folder.mkdir(parents=True, exist_ok=True)
    started, cwd = time.time(), os.getcwd()
    _note(job, cwd=cwd, started=started)
    code = launch(job.command, environment_for(job.settings(), here))
    seconds = time.time() - started
    try:
        _note(job, cwd=cwd, started=started, exit_code=code, seconds=round(seconds, 3))
        remarks = search_origin(job, here, asked=job.second_pass == "always" or (
            job.second_pass == "auto" and seconds <= LONG_RUN))
    except OSError as error:  # the disk is full, or the command removed the folder or the one it ran in
        remarks = (f"the records in {job.folder} are not complete: {error.strerror or error}",)
    return Result(code, replace(seen := read_folder(job.folder), run={**seen.run, "exit_code": code}), remarks)


def search_origin(job: Job, environment: Mapping[str, str], *, asked: bool = True) -> tuple[str, ...]:
    """The passes with tracing, where the first pass saw a value that is not finite and no snapshot named its origin.

    Returns remarks for a person.
    """
    before = read_folder(job.folder).findings
    if not tripped(before) or any(f.rule in NAMED for f in before):
        return ()
    if not asked:
        return (f"the origin was not searched; `traindx run --origin {shlex.quote(str(job.folder))}` runs the command "
                "again and names the operation",)
    entered: tuple[int, list[Finding]] | None = None
    """A pass that saw the value come in from before its first traced step: a pass from the start may see it made."""
    for number, arm in enumerate(arms(tripped(before)), 1):
        named = [f for f in trace(job, environment, number, arm, before) if f.rule in NAMED]
        if named and arm and came_in(named):
            entered = number, named
        elif named:
            if entered is not None:
                number, named = (number, named) if came_in(named) else entered
                _withdraw(job.folder / f"origin{number}", named)
            return ()
    if entered is not None:
        return ()
    return ("the run was repeated with tracing and the values stayed finite: it does not take the same course twice "
            "(unseeded randomness, data order, timing)",)


def came_in(findings: Iterable[Finding]) -> bool:
    """Whether all that a pass named was there before its first traced step."""
    return all(f.measured.get("kind") in CAME_IN for f in findings if f.rule in NAMED)


def _withdraw(folder: Path, findings: Sequence[Finding]) -> None:
    """What another pass saw better is no finding any more; the record stays, with that said."""
    for path in folder.glob("rank*.jsonl"):
        with path.open("a", encoding="utf-8") as file:
            for f in findings:
                told = {"kind": "withdrawn", "rule": f.rule, "key": "kind", "value": f.measured.get("kind")}
                file.write(json.dumps(told) + "\n")


def trace(job: Job, environment: Mapping[str, str], number: int, arm: int,
          before: Sequence[Finding] = ()) -> tuple[Finding, ...]:
    """One pass with tracing from the backward pass `arm` on, ended when every process has said what it saw."""
    settings = job.tracing(number, arm, before)
    folder = Path(settings.folder)
    folder.mkdir(parents=True, exist_ok=True)
    given = {**environment_for(settings, environment), **EAGER}
    launch_until(job.command, given, folder / OUTPUT, Enough(folder), job.seconds)
    return read_folder(folder).findings


def tripped(findings: Sequence[Finding]) -> list[int]:
    """The backward passes (from 0) at or after which a value stopped being finite, one for each process.

    Gradients are not looked at in every step: theirs is the last one after which they were finite. Of JAX programs: the
    calls of compiled functions.
    """
    seen = [f.measured for f in findings if f.rule == "T102"]
    places = [min(b, c) if m.get("what") == "gradient" and isinstance(c, int) else b for m in seen
              for b, c in [(m.get("backward"), m.get("clean"))] if isinstance(b, int)]
    calls = [f.measured.get("call") for f in findings if f.rule == "J102" and f.severity is not Severity.INFO]
    return [p for p in (*places, *calls) if isinstance(p, int)]


def arms(seen: Sequence[int]) -> tuple[int, ...]:
    """The backward pass from which each pass with tracing watches: a few before the place, then from the start."""
    if not seen:
        return ()
    near = max(0, min(seen) - MARGIN)
    return (near, 0)[:PASSES] if near else (0,)


class Enough:
    """Whether every process that records has named an origin, or the first one did so a while ago."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._since = folder, 0.0

    def __call__(self) -> bool:
        told = [p.read_text(encoding="utf-8", errors="replace") for p in self._folder.glob("*.summary.json")]
        if not any('"T10' in t or '"J10' in t for t in told):
            return False
        processes = len(list(self._folder.glob("rank*.jsonl")))
        self._since = self._since or time.monotonic()
        return len(told) >= processes or time.monotonic() - self._since > GRACE


def _note(job: Job, **fields: Any) -> None:
    """The runner's own record."""
    record = {"traindx": "live-run", "command": list(job.command), "probes": list(job.probes), **fields}
    part = job.folder / f"{RUN_FILE}.part"
    part.write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(part, job.folder / RUN_FILE)
