"""Experiments on a workspace: the outcome chosen, each change tried in protected copies, results written down.

The folder of a workspace's experiments (scratch/debug/experiments) holds the journal, the runs that were made (kept by
their content), and for each experiment X001.json, X001.md and X001.png.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from traindx.durable import write_state
from traindx.experiment_place import ProtectedPlace
from traindx.interpreters import lacking_in
from traindx.model import Verify
from traindx.scratch import SCRATCH
from traindx.terms import runnable
from traindx_tools import unlinked
from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.arms import MOST_REPEATS
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import where_it_ends
from traindx_tools.experiments.experiment import Engine, Result, paths
from traindx_tools.experiments.finding import finding_of
from traindx_tools.experiments.outcome import TRENDS, Outcome
from traindx_tools.experiments.preparing import least_steps, preparing
from traindx_tools.experiments.reading import metric_of
from traindx_tools.experiments.table import page
from traindx_tools.finding import Finding

FOLDER = SCRATCH / "experiments"
COPIES = "copies"
_NO_PROJECTS = frozenset(map(Path, ("/", "/dev", "/proc", "/sys", "/tmp", "/usr", "/etc", "/home", "/root")))
"""Folders of the system: nobody wants copies of them, and nothing is to be written there."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What is asked: a command that a person agreed to be run, what to change, what to look at."""

    workspace: Path
    command: str
    changes: tuple[Change, ...]
    outcome: Outcome
    budget: float | None = None
    """Seconds for all experiments together; None: the default for each (`budget.py`)."""
    repeats: int = MOST_REPEATS
    seed_option: str = ""
    resume: bool = False
    out: Path | None = None
    how: Verify = Verify()  # noqa: RUF009 - a frozen model without fields
    chosen: bool = False
    """Whether nobody named the outcome: what the control does not show is then measured by where the curve ends."""

    symptom: str = ""
    """The person's words."""

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return self.out if self.out is not None else self.workspace / FOLDER


@dataclass(frozen=True)
class Answer:
    """The experiments of a request, in its order, and what a person may type to go on."""

    request: Request
    results: tuple[Result, ...]
    sandbox: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One of each experiment: X101 to X104."""
        return tuple(finding_of(r) for r in self.results)

    @property
    def exit_code(self) -> int:
        """1 where a change had an effect, else 3 where one was not decided, else 0: none had an effect."""
        if any(r.verdict.is_effect for r in self.results):
            return 1
        return 0 if all(r.verdict.decided for r in self.results) else 3

    @property
    def rest(self) -> tuple[str, ...]:
        """Commands that go on where the budget ended, or with a Python that has what this one lacks."""
        return (*(_typed(self.request, r) for r in self.results if r.wants),
                *dict.fromkeys(c for r in self.results if (c := _elsewhere(self.request, r))))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        outcome = self.results[-1].design.outcome if self.results else self.request.outcome
        return {"outcome": str(outcome), "command": self.request.command, "sandbox": self.sandbox,
                "experiments": [_json(r, self.request.folder) for r in self.results], "rest": list(self.rest)}


def run_experiments(request: Request, say: Say = lambda _: None, progress: Say = lambda _: None) -> Answer:
    """Tries each change. Raises BadUsage for a change that cannot be made, UnreadableInput for a folder that cannot be
    written. Ctrl-C ends the run that goes on; what was finished is kept, and `resume` goes on from there."""
    checked(request)
    if not request.changes:
        raise BadUsage("there is nothing to change: name it with --change NAME; `traindx experiment --list` shows what "
                       "there is")
    folder = folder_of(request)
    kept, journal = paths(folder)
    place = ProtectedPlace(request.workspace, folder / COPIES, request.how, reads_log=reads_log(request.outcome))
    prepare = preparing(request.command, request.workspace, request.seed_option)
    for change in request.changes:
        prepare(change, 0)  # what cannot be made is said before anything is run
    engine = Engine(place, prepare, kept, journal, request.resume, say, progress)
    purse = Budget(request.budget)
    results = []
    outcome = request.outcome
    for change in request.changes:
        purse = purse if request.budget is not None else Budget(length=purse.length)
        tried = partial(engine.experiment, change, budget=purse, repeats=request.repeats, least=least_steps(change))
        result = tried(outcome)
        if request.chosen and outcome.kind in TRENDS and result.verdict.lacks == "symptom":
            outcome = where_it_ends(outcome)
            say(f"{result.verdict.why}; measured instead: {outcome.said} ({outcome})")
            result = tried(outcome)
        written(result, folder)
        results.append(result)
    return Answer(request, tuple(results), place.sandbox.said)


def checked(request: Request) -> None:
    """Raises BadUsage for a request that cannot be run at all."""
    if not request.command.strip():
        raise BadUsage("the command is empty: give one that trains, such as --run 'python train.py'")
    if request.budget is not None and not math.isfinite(request.budget):
        raise BadUsage(f"--budget is a number of seconds, got {request.budget}")
    if request.workspace.resolve() in _NO_PROJECTS:
        raise BadUsage(f"{request.workspace} is no folder of a project: give the folder of the training code")
    runnable(request.command, request.workspace, "--run")


def folder_of(request: Request) -> Path:
    """The folder of a request's files, made. Raises UnreadableInput where it cannot be written."""
    return _made(request.folder)


def reads_log(outcome: Outcome) -> bool:
    """Whether what is measured may stand in the log alone; the rest the instruments tell sooner and cheaper."""
    if outcome.is_event:
        return outcome.kind == "nonfinite"
    return outcome.kind == "gap" or not metric_of(outcome).startswith("live/")


def _made(folder: Path) -> Path:
    try:
        unlinked.made(folder)
    except OSError as error:
        raise UnreadableInput(f"cannot write to {folder}: {error.strerror}. Name another folder with --out") from error
    return folder.resolve()


def written(result: Result, folder: Path) -> None:
    """The table, the picture and the values of one experiment."""
    from traindx_tools.errors import MissingExtra
    from traindx_tools.experiments.picture import draw_experiment

    try:
        drawn = draw_experiment(result, folder / f"{result.id}.png")
    except (ImportError, MissingExtra):  # matplotlib is an extra: the table says the same
        drawn = None
    write_state(folder / f"{result.id}.md", page(result, drawn.name if drawn else "").encode())
    write_state(folder / f"{result.id}.json", (json.dumps(_json(result, folder), indent=1) + "\n").encode())


def _json(result: Result, folder: Path) -> dict[str, Any]:
    finding = finding_of(result)
    files = {kind: str(folder / f"{result.id}{end}") for kind, end in (("table", ".md"), ("picture", ".png"))
             if (folder / f"{result.id}{end}").is_file()}
    runs = [{"run": m.run.name, "key": m.key, "kept": m.kept, "seconds": round(m.run.trace.seconds, 2),
             "stopped": m.run.trace.stopped, "exit_code": m.run.trace.exit_code} for m in result.made]
    return {"id": result.id, "rule": finding.rule, "verdict": result.verdict.word, "change": str(result.design.change),
            "statement": finding.statement, **{k: v for k, v in result.verdict.to_json().items() if k != "word"},
            "applied": {"times": result.applied.times, "where": result.applied.where,
                        "problem": result.applied.problem},
            "finding": finding.to_json(), "runs": runs, "seconds": round(result.seconds, 2),
            "budget": result.budget, "files": files}


def _typed(request: Request, result: Result) -> str:
    """The command that goes on with an experiment that the budget ended."""
    words = ["traindx", "experiment", str(request.workspace), "--run", request.command, "--change",
             str(result.design.change), "--outcome", str(result.design.outcome), "--budget", f"{result.wants:.0f}"]
    words += ["--seed-option", request.seed_option] if request.seed_option else []
    words += ["--repeats", str(request.repeats)] if request.repeats != MOST_REPEATS else []
    words += ["--out", str(request.out)] if request.out is not None else []
    return shlex.join([*words, "--resume"])


def _elsewhere(request: Request, result: Result) -> str:
    """The experiment with another Python, "" where no run of it lacked a package that another one has."""
    broke = next((m.run.trace.broke for m in result.made if m.run.trace.broke), "")
    absent = lacking_in(broke, request.command, request.workspace)
    if absent is None or not absent.command:
        return ""
    return shlex.join(["traindx", "experiment", str(request.workspace), "--run", absent.command, "--change",
                       str(result.design.change)])

