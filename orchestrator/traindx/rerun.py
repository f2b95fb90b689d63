"""`--run CMD`: the user's consent to run the training again, in a copy of the workspace, under a time and memory limit.

The workspace itself is never run in and never written to. The new log is read with the same instruments, so that a
fault that comes and goes is told apart from one that is always there, and a run without a log gets one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from traindx.diagnose import Report, diagnose, typed
from traindx.verify import Outcome, clean_environment, specification, supervised, verify_from
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.finding import Finding, Severity

LEFT_OUT = frozenset({".git", ".hg", ".svn", ".venv", "venv", "env", "node_modules", "__pycache__", ".mypy_cache",
                      "scratch", ".pytest_cache", ".tox", "wandb"})  # fmt: skip
"""Folders that a training command does not need in its copy."""

COPY_LIMIT = 4 * 2**30
"""Bytes of the workspace that are copied at most."""

DEFAULT_TIMEOUT = 600.0
"""Seconds that the command may take."""


@dataclass(frozen=True)
class Rerun:
    """A finished run in a copy: how it ended, what it printed, which files it wrote or changed."""

    command: str
    copy: Path
    outcome: Outcome
    written: tuple[Path, ...]

    @property
    def log(self) -> Path:
        """The command's output, standard error included."""
        return self.outcome.folder / "output.log"

    @property
    def last_line(self) -> str:
        """The last thing that it printed, bounded."""
        try:
            with self.log.open("rb") as out:
                out.seek(max(0, self.log.stat().st_size - 2000))
                lines = out.read().decode("utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        return next((x.strip()[:200] for x in reversed(lines) if x.strip()), "")

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        if self.outcome.timed_out:
            return f"did not end within its limit and was stopped after {self.outcome.seconds:.0f} s"
        if self.outcome.out_of_memory:
            return "used more memory than allowed and was stopped"
        return f"ended with exit code {self.outcome.exit_code} after {self.outcome.seconds:.0f} s"


def _files(root: Path) -> Iterable[Path]:
    for folder, names, files in os.walk(root, followlinks=False):
        names[:] = [n for n in names if n not in LEFT_OUT]
        yield from (Path(folder) / f for f in files)


def copy_workspace(workspace: Path, target: Path) -> None:
    """Copies what a training command needs; links stay links. Raises BadUsage for a workspace over the limit."""
    size = sum(f.lstat().st_size for f in _files(workspace))
    if size > COPY_LIMIT:
        raise BadUsage(f"{workspace} holds {size / 2**30:.1f} GiB and --run copies at most "
                       f"{COPY_LIMIT / 2**30:.0f} GiB. "
                       "Give the folder of the training code alone, with its data linked into it.")
    shutil.copytree(workspace, target, symlinks=True, ignore=lambda _, names: [n for n in names if n in LEFT_OUT])


def _stamps(root: Path) -> dict[Path, tuple[int, int]]:
    return {f: (s.st_mtime_ns, s.st_size) for f in _files(root) for s in [f.lstat()]}


def run_in_copy(command: str, workspace: Path, folder: Path, timeout: float = DEFAULT_TIMEOUT) -> Rerun:
    """Runs the command in a copy of the workspace below `folder`, without the secrets of this environment."""
    how = verify_from({"command": command, "timeout": timeout})
    assert how is not None, "fields were given"
    copy, run = folder / "copy", folder / "run"
    copy_workspace(workspace, copy)
    run.mkdir(parents=True)
    before = _stamps(copy)
    limits = specification(how, copy)
    environment = {**clean_environment(os.environ), "PYTHONUNBUFFERED": "1"}
    outcome = asyncio.run(supervised(run, limits, environment))
    after = _stamps(copy)
    return Rerun(command, copy, outcome, tuple(sorted(f for f, stamp in after.items() if before.get(f) != stamp)))


def diagnose_rerun(rerun: Rerun, symptom: str) -> Report:
    """The diagnosis of the new run: its output, the metrics it wrote and the code it ran."""
    code = [f for f in _files(rerun.copy) if f.suffix == ".py"]
    paths = [rerun.log, *rerun.written, *code]
    report = diagnose([p for p in paths if p.is_file()], symptom=symptom, root=rerun.copy)
    return replace(report, subject=typed([rerun.log]))


def _serious(findings: Iterable[Finding]) -> frozenset[str]:
    return frozenset(f.rule for f in findings if f.severity.rank >= Severity.MEDIUM.rank and f.rule[0] == "L")


def compare(old: Report, new: Report, rerun: Rerun) -> str:
    """One sentence: did the new run show what the old one showed?"""
    before, after = _serious(old.seen.findings), _serious(new.seen.findings)
    head = f"`{rerun.command}` was run again in a copy and {rerun.ended}"
    if rerun.outcome.exit_code not in (0, None) and not any(len(s) for s in new.seen.run.series):
        last = rerun.last_line
        return f"{head} before it trained, so that nothing can be compared" + (f": {last}" if last else ".")
    if not before and not after:
        return f"{head}: no serious finding in either run."
    if before and before <= after:
        return f"{head}: reproduced, {', '.join(sorted(before))} again."
    if before & after:
        return (f"{head}: partly reproduced ({', '.join(sorted(before & after))} again, "
                f"{', '.join(sorted(before - after))} not seen this time).")
    if before:
        return f"{head}: not reproduced, {', '.join(sorted(before))} did not come again: the fault is intermittent."
    return f"{head}: it shows {', '.join(sorted(after))}, which the given artifacts did not show."


def with_rerun(old: Report, command: str, workspace: Path, folder: Path, timeout: float = DEFAULT_TIMEOUT) -> Report:
    """The better of the old diagnosis and that of a new run, with a note on whether it was reproduced."""
    rerun = run_in_copy(command, workspace, folder, timeout)
    try:
        new = diagnose_rerun(rerun, old.seen.symptom)
    except UnreadableInput as error:
        note = f"`{command}` was run again in a copy and {rerun.ended}; nothing of it could be read: {error}"
        return replace(old, remarks=(*old.remarks, note))
    note = compare(old, new, rerun)
    # The old artifacts are the user's own case; the new run speaks where they were silent.
    better = new if old.status != "diagnosis_complete" and new.status == "diagnosis_complete" else old
    return replace(better, remarks=(*old.remarks, note))
