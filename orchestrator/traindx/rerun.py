"""`--run CMD`: the user's consent to run the training again, in a copy of the workspace, under a time and memory limit.

The workspace itself is never run in and never written to. The live instruments are attached to the new run, and where a
value stopped being finite in it, a further run (in a fresh copy) traces the operation that did it. What they saw is
weighed together with the old artifacts. The new log is read too, so that a fault that comes and goes is told apart from
one that is always there, and a run without a log gets one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from traindx import next_steps
from traindx.diagnose import Report, diagnose
from traindx.experiment_place import METRIC_ENDINGS, MOST_WRITTEN, threads_for
from traindx.fruitless import NEVER_TRAINED, NO_METRICS, UNREADABLE
from traindx.hindrances import package_lacking, tail
from traindx.joining import joined
from traindx.model import Verify
from traindx.notices import Say, begun, unsaid
from traindx.planting import with_planted
from traindx.proving import decidable, has_own, with_experiments
from traindx.sandbox import find_sandbox, refused_a_write
from traindx.seen_at_once import seen_at_once
from traindx.stopping import run_here
from traindx.trial_run import TrialRun
from traindx.verify import Outcome, clean_environment, ended, read_outcome, specification, supervised, verify_from
from traindx_tools import unlinked
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.watch import Watch
from traindx_tools.finding import Finding, Severity
from traindx_tools.live.reading import read_folder
from traindx_tools.live.runner import EAGER, Enough, Job, arms, came_in, tripped
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.on_data.run_data import beside_files
from traindx_tools.on_weights import is_weights

LEFT_OUT = frozenset({".git", ".hg", ".svn", ".venv", "venv", "env", "node_modules", "__pycache__", ".mypy_cache",
                      "scratch", ".pytest_cache", ".tox", "wandb"})  # fmt: skip
"""Folders that a training command does not need in its copy."""

COPY_LIMIT = 4 * 2**30
"""Bytes of the workspace that are copied at most."""

NOT_ENDED = "did not end within its limit"
DEFAULT_TIMEOUT = 600.0
"""Seconds that the command may take."""

MADE = "made.json"
"""What is remembered of a run in its folder, for a process that takes over."""

PROBES = ("all",)
"""The live instruments of a run that was made to find something out: all that watch."""
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Rerun:
    """A finished run in a copy: how it ended, what it printed, which files it wrote or changed."""

    command: str
    copy: Path
    outcome: Outcome
    written: tuple[Path, ...]
    seen: tuple[Finding, ...] = ()
    """What the live instruments saw, with files as seen from the workspace."""

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
            return f"{NOT_ENDED} and was stopped after {self.outcome.seconds:.0f} s"
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


def run_in_copy(command: str, workspace: Path, folder: Path, timeout: float = DEFAULT_TIMEOUT,
                say: Say = unsaid) -> Rerun:
    """Runs the command in a copy of the workspace below `folder`, without the secrets of this environment.

    The live instruments are attached; what they see is in the result, and is said as soon as the command has ended.
    A run that an earlier process made in this folder, of the same command on the same files, is taken as it is.
    """
    copy, live = folder / "copy", folder / "live"
    state = _state_of(command, workspace)
    earlier = _made_before(command, folder, state)
    if earlier is not None:
        return earlier
    _cleared(folder)
    say(begun(f"`{command}` runs in a copy with instruments attached, {timeout:.0f} s at most"))
    copy_workspace(workspace, copy)
    before = _stamps(copy)
    job = Job((command,), live, PROBES, options={"protected": True})
    outcome = run_here(_attached(command, copy, folder / "run", timeout, job.settings()))
    after = _stamps(copy)
    written = tuple(sorted(f for f, stamp in after.items() if before.get(f) != stamp))
    told = read_folder(live)
    seen = (*told.seen_from(copy.resolve()), *beside_files(told, workspace.resolve()))
    origins: tuple[Finding, ...] = ()
    if not outcome.cancelled:
        for sentence in seen_at_once(told, seen, copy.resolve()):
            say(sentence)
        origins = _origins(command, workspace, folder, timeout, job, seen, say)
    rerun = Rerun(command, copy, outcome, written, (*seen, *origins))
    if not outcome.cancelled:
        _remembered(rerun, folder, state)
    return rerun


def _state_of(command: str, workspace: Path) -> str:
    """A digest of the command and of the names, sizes and times of the files that it is run on."""
    stamps = sorted((f.relative_to(workspace).as_posix(), *stamp) for f, stamp in _stamps(workspace).items())
    return hashlib.sha256(json.dumps([command, stamps]).encode()).hexdigest()


def _cleared(folder: Path) -> None:
    """Without what a process left that was killed in the midst of the run; its experiments are kept by content."""
    if folder.is_symlink():
        return
    for name in ("copy", "live", "run"):
        for part in folder.glob(f"{name}*"):
            shutil.rmtree(part, ignore_errors=True)


def _remembered(rerun: Rerun, folder: Path, state: str) -> None:
    told = {"state": state, "written": [w.relative_to(rerun.copy).as_posix() for w in rerun.written],
            "seen": [f.to_json() for f in rerun.seen]}
    half = folder / f"{MADE}.part"
    unlinked.write(half, json.dumps(told, allow_nan=False))
    half.replace(folder / MADE)


def _made_before(command: str, folder: Path, state: str) -> Rerun | None:
    """The run that was remembered here, None where there is none of this state that can be read whole."""
    try:
        data = json.loads((folder / MADE).read_text("utf-8"))
        if data["state"] != state:
            return None
        seen = tuple(Finding.from_json(f) for f in data["seen"])
        written = tuple(folder / "copy" / w for w in data["written"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    outcome = read_outcome(folder / "run")
    return None if outcome.cancelled else Rerun(command, folder / "copy", outcome, written, seen)


def _origins(command: str, workspace: Path, folder: Path, timeout: float, job: Job,
             seen: Sequence[Finding], say: Say) -> tuple[Finding, ...]:
    """What passes with tracing name, each in a fresh copy, where a value stopped being finite.

    Where it came in from before the first traced step, a pass from the start of the program may see it made.
    """
    entered: tuple[Finding, ...] = ()
    for number, arm in enumerate(arms(tripped(seen)), 1):
        say(begun(f"`{command}` runs once more in a copy, to name the operation that a value stopped being finite in"))
        copy = folder / f"copy{number}"
        copy_workspace(workspace, copy)
        settings = job.tracing(number, arm, seen)
        run_here(_attached(command, copy, folder / f"run{number}", timeout, settings, tracing=True))
        found = [f for f in read_folder(Path(settings.folder)).seen_from(copy.resolve()) if f.rule != "T102"]
        if found and arm and came_in(found):
            entered = tuple(found)
        elif found:
            return entered if entered and came_in(found) else tuple(found)
    return entered


async def _attached(command: str, copy: Path, run: Path, timeout: float, settings: Settings, *,
                    tracing: bool = False) -> Outcome:
    """One run under limits with the instruments attached; one with tracing ends as soon as it has named the origin."""
    how = verify_from({"command": command, "timeout": timeout})
    assert how is not None, "fields were given"
    run.mkdir(parents=True)
    own = clean_environment(os.environ)
    environment = {**environment_for(settings, {**own, **threads_for(own)}), "PYTHONUNBUFFERED": "1",
                   **(EAGER if tracing else {})}
    spec = specification(how, copy, find_sandbox(), [run.parent])
    running = asyncio.ensure_future(supervised(run, spec, environment, outlives=False))
    enough = Enough(Path(settings.folder))
    while tracing and not running.done():
        await asyncio.wait([running], timeout=POLL_SECONDS)
        if enough():
            running.cancel()
            break
    return await ended(running, run)


def diagnose_rerun(rerun: Rerun, old: Report) -> Report:
    """The diagnosis of the new run: its output, the metrics it wrote and the code it ran."""
    code = tuple(f for f in _files(rerun.copy) if f.suffix == ".py")
    entry = tuple(str(rerun.copy / old.places.name(str(f))) for f in old.seen.scope.entry) if old.asked.entry else ()
    asked = replace(old.asked, entry=entry, commands=(rerun.command,), code=code, named=(), which=None)
    paths = [rerun.log, *rerun.written]
    return diagnose([p for p in paths if p.is_file()], symptom=old.seen.symptom, root=rerun.copy, asked=asked)


def _serious(findings: Iterable[Finding]) -> frozenset[str]:
    return frozenset(f.rule for f in findings if f.severity.rank >= Severity.MEDIUM.rank and f.rule[0] == "L")


def compare(old: Report, new: Report, rerun: Rerun) -> str:
    """One sentence: did the new run show what the old one showed?"""
    before, after = _serious(old.seen.findings), _serious(new.seen.findings)
    head = f"`{rerun.command}` was run again in a copy and {rerun.ended}"
    if rerun.outcome.exit_code not in (0, None) and not any(len(s) for s in new.seen.run.series):
        last = rerun.last_line
        return f"{head} {NEVER_TRAINED}{f': {last}' if last else ''}."
    if not before and not after:
        shown = old.seen.run.series or old.seen.run.errors
        return f"{head}: " + ("neither your log nor the new one shows a fault." if shown else
                              "its log shows no fault, and there was none before to compare it with.")
    if before and before <= after:
        return f"{head}: reproduced, {_named(before, new)} again."
    untold = _untold(old, new, before - after)
    if untold:
        return f"{head}: {untold}."
    if before & after:
        return (f"{head}: partly reproduced ({_named(before & after, new)} again, "
                f"{_named(before - after, old)} not seen this time).")
    if before:
        return f"{head}: not reproduced, {_named(before, old)} did not come again: {_otherwise(rerun)}."
    return f"{head}: it shows {_named(after, new)}, which your log did not show."


def _named(rules: Iterable[str], report: Report) -> str:
    """Rules by what they see: `L201 (the loss does not move)`."""
    titles = {f.rule: f"{f.title[:1].lower()}{f.title[1:].rstrip('.')}" for f in report.seen.findings}
    return ", ".join(f"{r} ({titles[r]})" if r in titles else r for r in sorted(rules))


def _otherwise(rerun: Rerun) -> str:
    """What may be why: a run is the same only from the same state, and one run more tells of no frequency."""
    kept = sorted(f.relative_to(rerun.copy).as_posix() for f in _files(rerun.copy) if is_weights(str(f)))
    begun = f" (from {kept[0]}, say, if the program reads it)" if kept else ""
    return f"it depends on the state that this run began with{begun}, on its seed or machine, or it comes now and then"


def _untold(old: Report, new: Report, missing: frozenset[str]) -> str:
    """Why it means nothing that these findings did not come again, "" where it does.

    Errors (L5xx) come or do not come; what metrics show needs metrics, and as many steps as it took the first time.
    """
    of_metrics = [f for f in old.seen.findings if f.rule in missing and f.rule[:2] != "L5"]
    if not of_metrics:
        return ""
    if not any(len(s) for s in new.seen.run.series):
        return NO_METRICS
    reached = max((float(np.nanmax(s.step)) for s in new.seen.run.series if np.isfinite(s.step).any()), default=None)
    places = [f.where.step for f in of_metrics if f.where.step is not None and f.where.unit == "step"]
    if reached is None or not places or reached >= max(places):
        return ""
    return (f"it has to run longer to tell: it reached step {reached:,.0f}, and by step {max(places):,.0f} the first "
            f"time came {_named(missing, old)}")


def _hindered(old: Report, rerun: Rerun) -> str:
    """What is said of a run that the protection ended: its error is ours, and no fault of the program."""
    failed_before = any(f.rule.startswith("L5") for f in old.seen.findings)
    if rerun.outcome.exit_code in (0, None) or failed_before or find_sandbox().program is None:
        return ""
    if not refused_a_write(rerun.log):
        return ""
    return ("It was refused a write outside of the copy, and its error is of that protection, not of the program: give "
            "the program a path in its own folder.")


def _never_trained_here(old: Report, new: Report, rerun: Rerun) -> bool:
    """Whether the run failed before it trained, where the person's own run did train: that is of this machine."""
    trained = [any(len(s) for s in r.seen.run.series) for r in (old, new)]
    return rerun.outcome.exit_code not in (0, None) and trained == [True, False]


def with_rerun(old: Report, command: str, workspace: Path, folder: Path, timeout: float = DEFAULT_TIMEOUT,
               budget: float | None = None, say: Say = unsaid, *, screens: bool = True) -> Report:
    """The old diagnosis together with what a new run shows, and a note on whether it was reproduced.

    The findings of the live instruments join those of the old artifacts in one triage. Of the new log only what the old
    artifacts were silent about counts: they are the user's own case. Where that names no cause that was seen in the
    run, experiments follow: `budget` seconds of them, None: the default, 0: none. `screens`: as of `with_experiments`.
    """
    rerun = run_in_copy(command, workspace, folder, timeout, say)
    live = read_folder(folder / "live")
    old = replace(old, facts=live.facts)
    try:
        new = diagnose_rerun(rerun, old)
    except UnreadableInput as error:
        note = f"`{command}` was run again in a copy and {rerun.ended}; {UNREADABLE}: {error}"
        return replace(joined(old, rerun.seen, 0), remarks=(*old.remarks, note), facts=live.facts)
    note = f"{compare(old, new, rerun)} It was {find_sandbox().said}."
    absent = package_lacking(tail(rerun.log), command, workspace) if rerun.outcome.exit_code not in (0, None) else None
    if absent is not None:
        say(f"it did not train: {absent}")
        again = () if not absent.command else (next_steps.once_more(old, absent.command),)
        return replace(old, remarks=(*old.remarks, f"{str(absent)[0].upper()}{str(absent)[1:]}. {note}"),
                       extra_checks=(*again, *old.extra_checks))
    if _never_trained_here(old, new, rerun):
        return replace(old, remarks=(*old.remarks, note))
    silent = not _serious(old.seen.findings)
    hindered = _hindered(old, rerun)
    if hindered:
        note = f"{note} {hindered}"
        new = replace(new, seen=new.seen.without([f for f in new.seen.findings if f.rule.startswith("L5")]))
    on_log = [f for f in new.seen.findings if silent and f.rule[0] == "L"]
    better = joined(old, (*rerun.seen, *on_log), new.seen.records if silent else 0)
    if not old.seen.records and new.seen.records:  # without a record of the person's, this run's is the one looked at
        better = joined(new, rerun.seen, 0)
    if better.status != "diagnosis_complete":
        anew = joined(new, rerun.seen, 0)
        better = anew if anew.status == "diagnosis_complete" else better
    agreed = TrialRun(Verify(command=command, timeout=timeout), workspace, folder, say)
    better = replace(better, seen=replace(better.seen, watched=True), remarks=(*old.remarks, note), subject=old.subject,
                     made=folder, trial_run=agreed, facts=live.facts)
    if budget == 0 or rerun.outcome.cancelled:
        return better
    control = control_of(rerun, folder)
    plants = control is not None and rerun.outcome.exit_code == 0

    def planted(report: Report, seconds: float | None) -> tuple[Report, float]:
        outcome = choose(report.seen.symptom, report.seen.run, report.seen.findings, control)
        return with_planted(report, command, workspace, folder / "planted", folder / "live", outcome,
                            rerun.outcome.seconds, seconds, say)

    later = plants and has_own(better, folder / "experiments", command, workspace)  # what one change of its own decides
    if plants and not later and decidable(better):
        better, took = planted(better, budget)
        budget = max(1.0, budget - took) if budget is not None else None
    after = with_experiments(better, command, workspace, folder / "experiments", rerun.outcome.seconds, budget, say,
                             control, screens=screens)
    return planted(after, budget)[0] if later and decidable(after) else after


def control_of(rerun: Rerun, folder: Path) -> Trace | None:
    """The run as an experiment reads it: its instruments watch and change nothing. None where it was cut off."""
    if rerun.outcome.timed_out or rerun.outcome.out_of_memory or rerun.outcome.cancelled:
        return None
    watch = Watch(folder / "live", rerun.log, rerun.copy.resolve())
    return watch.end(rerun.outcome.seconds, rerun.outcome.exit_code, "",
                     [p for p in rerun.written if p.suffix.lower() in METRIC_ENDINGS][:MOST_WRITTEN])
