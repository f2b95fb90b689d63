"""A captured step, replayed: the program is started in the protected runner up to its first step, and the step put in.

What comes of it stands in `scratch/debug/replays/STEP/`: the table (`.md`), every number (`.json`), and `replayed.json`
with what was looked at besides.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.experiment_place import ProtectedPlace
from traindx.model import Verify
from traindx.scratch import SCRATCH
from traindx_tools import unlinked
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.place import Prepared
from traindx_tools.experiments.trace import Trace
from traindx_tools.finding import Finding
from traindx_tools.live.step_file import ENDING, RESULT, read_step, steps_in

FOLDER = SCRATCH / "replays"
PROBE = "stored-step"
SECONDS = 300.0
"""For everything: the start of the program, its first step, and the replay."""
SHARE = 0.5
"""Of the time, for the replay itself; the rest is for the program to come to its first step."""
MOST_RESULT = 64 * 2**20
NO_PROBES: tuple[str, ...] = (PROBE,)


@dataclass(frozen=True)
class Request:
    """`command`: the person's consent to start it in a copy of the workspace."""

    step: Path
    command: str
    workspace: Path
    seconds: float = SECONDS
    how: Verify = Verify()  # noqa: RUF009 - a frozen model without fields


@dataclass(frozen=True)
class Answer:
    """What it came to. `why`: why the step could not be replayed, "" where it was."""

    step: Path
    told: Mapping[str, Any]
    findings: tuple[Finding, ...]
    folder: Path
    seconds: float
    why: str = ""

    @property
    def exit_code(self) -> int:
        """1 where a change takes the symptom away, 0 where none does, 3 where it could not be replayed."""
        if self.why:
            return 3
        return int(any(f.rule == "X301" for f in self.findings))

    @property
    def page(self) -> Path | None:
        """The table."""
        return next(iter(sorted(self.folder.glob("*.md"))), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"step": str(self.step), "why": self.why, "seconds": round(self.seconds, 2), "folder": str(self.folder),
                "findings": [f.to_json() for f in self.findings], **{k: v for k, v in self.told.items() if k != "why"}}


def chosen(path: Path) -> Path:
    """The step that is meant: the file itself, or the only one of a run's folder. Raises UnreadableInput."""
    found = steps_in(path)
    if len(found) == 1:
        return found[0]
    if found:
        raise UnreadableInput(f"{path} holds {len(found)} captured steps: name one of them, such as {found[0]}")
    if path.is_dir():
        raise UnreadableInput(f"{path} holds no captured step: {_why_none(path)}")
    raise UnreadableInput(f"{path} is no captured step: one is traindx-run/TIME/steps/rank00000-step00000012-loss"
                          f"{ENDING}, written by `traindx run --snapshot` when a step goes wrong")


def _why_none(folder: Path) -> str:
    """What the run itself said, or that it was not asked to keep steps."""
    for path in sorted(folder.glob("rank*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("kind") in ("step", "replay") and record.get("failed"):
                return f"step {record.get('step')} went wrong and was not kept: {record['failed']}"
    return "`traindx run --snapshot -- CMD` keeps one where a loss, gradient or parameter goes wrong"


def replay_step(request: Request, say: Callable[[str], None] = lambda _: None) -> Answer:
    """Replays it. Raises BadUsage, UnreadableInput, CopyRefused; a program that does not get there is an answer."""
    _check(request)
    step = request.step.resolve()
    stored = read_step(step)
    symptom = stored.told.get("symptom", {})
    say(f"step {symptom.get('step')} ({symptom.get('kind')}): the program is started up to its first step in a copy")
    began = time.monotonic()
    scratch = request.workspace.resolve() / FOLDER
    place = ProtectedPlace(request.workspace.resolve(), scratch / "copies", request.how, reads_log=False)
    prepared = Prepared(request.command, probes=NO_PROBES, options={
        "step_file": str(step), "step_seconds": SHARE * request.seconds})
    trace = place.run(prepared, lambda t: (t.folder / "live" / RESULT).is_file() or any(
        (p / "live" / RESULT).is_file() for p in (scratch / "copies").glob("run-*")), seconds=request.seconds)
    try:
        return _answer(request, trace, scratch / step.name.removesuffix(ENDING), time.monotonic() - began)
    finally:
        shutil.rmtree(trace.folder, ignore_errors=True)


def _check(request: Request) -> None:
    if not request.command.strip():
        raise BadUsage("the command is empty: give the one that trained, such as --run 'python train.py'")
    if not math.isfinite(request.seconds) or request.seconds <= 0:
        raise BadUsage(f"--budget is a number of seconds above 0, got {request.seconds:g}")
    if not request.workspace.is_dir():
        raise UnreadableInput(f"{request.workspace}: there is no such folder; --workspace names that of the training "
                              "code, which is copied")


def _answer(request: Request, trace: Trace, folder: Path, seconds: float) -> Answer:
    live = trace.folder / "live"
    told = _told(live / RESULT)
    why = str(told.get("why", "")) if told else _unreached(trace, request.seconds)
    shutil.rmtree(folder, ignore_errors=True)
    kept = _kept(live, folder, told or {"why": why})
    findings = tuple(f for f in trace.findings if f.rule.startswith(("X3", "T101", "J101")))
    return Answer(request.step, told or {}, findings, kept, seconds, why)


def _told(path: Path) -> dict[str, Any] | None:
    try:
        if path.is_symlink() or path.stat().st_size > MOST_RESULT:
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def _kept(live: Path, folder: Path, told: Mapping[str, Any]) -> Path:
    """The table and the numbers, where they stay. Raises UnreadableInput."""
    try:
        unlinked.write(folder / RESULT, json.dumps(told, indent=1) + "\n")
        for path in sorted((live / "replays").glob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_RESULT:
                unlinked.write(folder / path.name, path.read_bytes())
    except OSError as error:
        raise UnreadableInput(f"cannot write to {folder}: {error.strerror or error}") from error
    return folder


def _unreached(trace: Trace, seconds: float) -> str:
    """Why there is no result: the program did not come to a step."""
    if trace.stopped == "time":
        return (f"the program did not come to its first step and through the replay in {seconds:.0f} s; --budget "
                "SECONDS gives it more")
    if trace.stopped:
        return f"the program was ended for its {trace.stopped} before the step was replayed"
    if trace.error:
        return f"the program ended before its first step: {trace.error}"
    return (f"the program ended with exit code {trace.exit_code} and made no step of the kind that was captured: give "
            "the command that trained")
