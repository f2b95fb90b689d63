"""A screen of a workspace: everything that can be changed, one at a time, in protected copies; the result written down.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from traindx.decidable import arranged, stages_in
from traindx.diagnose import diagnose
from traindx.durable import write_state
from traindx.experiment_place import ProtectedPlace
from traindx.experiments import COPIES, Request, checked, folder_of, reads_log, written
from traindx.joining import joined
from traindx_tools.errors import BadUsage, TraindxError
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.experiment import Engine, paths
from traindx_tools.experiments.interventions.writing.program import Program
from traindx_tools.experiments.plan import Decision
from traindx_tools.experiments.preparing import preparing
from traindx_tools.experiments.screening.arms import CODE, KINDS, Arm, arms_of
from traindx_tools.experiments.screening.screen import SECONDS, Screened, screen
from traindx_tools.experiments.screening.telling import findings_of, page, rows
from traindx_tools.experiments.trace import Trace
from traindx_tools.finding import Finding

Say = Callable[[str], None]


@dataclass(frozen=True)
class ScreenAnswer:
    """A screen of a request, and what a person may type to go on."""

    request: Request
    screened: Screened
    kinds: tuple[str, ...] = KINDS

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What stands out (X105), and the experiments that were made on it (X101 to X104)."""
        return tuple(findings_of(self.screened))

    @property
    def page(self) -> Path:
        """The table of all arms."""
        return self.request.folder / f"{self.screened.id}.md"

    @property
    def exit_code(self) -> int:
        """1 where something stands out, 3 where nothing does and not everything was tried, else 0."""
        if self.screened.standing_out:
            return 1
        return 3 if self.screened.left or self.screened.problem else 0

    @property
    def rest(self) -> tuple[str, ...]:
        """The command that goes on where the budget ended."""
        return (_typed(self.request, self.kinds, self.screened),) if self.screened.left else ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        told = self.screened
        return {"outcome": str(told.outcome), "command": self.request.command, "id": told.id, "value": told.value,
                "problem": told.problem,
                "arms": [{"change": change, "value": value, "said": said} for change, value, said in rows(told)],
                "stands_out": [str(t.arm.change) for t in told.standing_out],
                "not_tried": [str(a.change) for a in told.left], "seconds": round(told.seconds, 2),
                "budget": told.budget, "findings": [f.to_json() for f in self.findings], "rest": list(self.rest),
                "files": {"table": str(self.page)}}


def run_screen(request: Request, kinds: Sequence[str] = KINDS, say: Say = lambda _: None,
               progress: Say = lambda _: None) -> ScreenAnswer:
    """Tries every setting, every one of several like files and every stage, one at a time.

    `request.changes` are tried first, as arms of their own. Raises BadUsage where nothing can be tried, and
    UnreadableInput for a folder that cannot be written. Ctrl-C loses the run that goes on and nothing else: with
    `resume` the next screen takes what was made.
    """
    checked(request)
    own = [Arm("stages", str(c), c, own=True, why="you named it") for c in request.changes]
    arms = [*own, *arms_of(request.command, request.workspace, kinds, _stages(request))]
    return ScreenAnswer(request, _screened(request, arms, say, progress), tuple(kinds))


def _screened(request: Request, arms: Sequence[Arm], say: Say, progress: Say) -> Screened:
    folder = folder_of(request)
    kept, journal = paths(folder)
    place = ProtectedPlace(request.workspace, folder / COPIES, request.how, reads_log=reads_log(request.outcome))
    prepare = preparing(request.command, request.workspace, request.seed_option)
    engine = Engine(place, prepare, kept, journal, request.resume, say, progress)
    found = screen(engine, makeable(engine, arms), request.outcome, Budget(request.budget or SECONDS),
                   partial(_arranged, request, say))
    for result in found.confirmed:
        written(result, folder)
    write_screen(found, folder)
    return found


def _arranged(request: Request, say: Say, arms: Sequence[Arm], control: Trace) -> list[Arm]:
    """What tells most first: the suspects are those of the workspace's text and log, the person's words and this run.
    """
    try:
        read = diagnose([request.workspace], symptom=request.symptom)
        report = joined(read, control.findings, 0)
    except (TraindxError, OSError) as error:
        say(f"tried in the order of the program alone: {error}")
        report = None
    return arranged(arms, report, control, request.outcome)


def makeable(engine: Engine, arms: Sequence[Arm]) -> list[Arm]:
    """Those that can be made here: a key that is read in two places is said once and left out."""
    found: list[Arm] = []
    for arm in arms:
        if arm.kind == CODE:  # read from the source as it is: there it can be made
            found.append(arm)
            continue
        try:
            engine.prepare(arm.change, 0)
        except BadUsage as error:
            engine.say(f"{arm.said} cannot be tried: {error}")
        else:
            found.append(arm)
    return found


def write_screen(found: Screened, folder: Path) -> None:
    """The page of a screen."""
    write_state(folder / f"{found.id}.md", page(found).encode())
    values = {"id": found.id, "outcome": str(found.outcome), "value": found.value,
              "arms": [list(row) for row in rows(found)]}
    write_state(folder / f"{found.id}.json", (json.dumps(values, indent=1) + "\n").encode())


def _stages(request: Request) -> Iterator[Decision]:
    """Changes of the catalog that have something to take hold of in the program's text."""
    code = "\n".join(Program(request.command, request.workspace).sources.values())
    return stages_in(code)


def _typed(request: Request, kinds: Sequence[str], screened: Screened) -> str:
    each = max(1.0, screened.control.seconds)
    budget = 60 * max(1, round((screened.seconds + each * (len(screened.left) + 6)) / 60 + 0.5))
    words = ["traindx", "experiment", str(request.workspace), "--run", request.command, "--screen", ",".join(kinds),
             "--outcome", str(request.outcome), "--budget", f"{budget:.0f}", "--resume"]
    words += ["--out", str(request.out)] if request.out is not None else []
    return shlex.join(words)
