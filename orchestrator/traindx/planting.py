"""Values planted in the data files: where they arrive in the batches, in protected copies of the workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx.diagnose import Report
from traindx.durable import write_state
from traindx.experiment_place import ProtectedPlace
from traindx.experiments import COPIES, Request, checked, folder_of
from traindx.joining import joined
from traindx_tools import unlinked
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.planting.study import Planting, Study, below
from traindx_tools.experiments.planting.telling import findings_of, lines
from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_folder

SECONDS = 300.0
"""For one study that is asked for without a budget."""
LENGTHS, ATLEAST = 2.0, 20.0
"""Within `diagnose --run`: times the run's own length, and seconds, that a study takes at most; half of a budget."""
_SILENT = frozenset({"nonfinite", "error", "exit", "hang", "step-time", "memory-growth"})
"""What is measured of runs that stop, or are slow: no target is looked for in an input."""
FILE = "planted.json"
Say = Callable[[str], None]


@dataclass(frozen=True)
class PlantAnswer:
    """A study of a request."""

    request: Request
    study: Study

    @property
    def findings(self) -> tuple[Finding, ...]:
        """X401, X402, or none."""
        return findings_of(self.study)

    @property
    def exit_code(self) -> int:
        """1 where something was found, 3 where nothing could be told, else 0."""
        return 1 if self.findings else 3 if self.study.why else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"command": self.request.command, **self.study.to_json(), "said": " ".join(lines(self.study)),
                "findings": [f.to_json() for f in self.findings]}


def run_planting(request: Request, say: Say = lambda _: None) -> PlantAnswer:
    """Plants values in what the command reads. Raises BadUsage for a request that cannot be run, UnreadableInput for a
    folder that cannot be written."""
    checked(request)
    folder = folder_of(request)
    place = ProtectedPlace(request.workspace, folder / COPIES, request.how, reads_log=False)
    study = Planting(place, request.command, None, request.budget or SECONDS, say).study()
    answer = PlantAnswer(request, study)
    write_state(folder / FILE, (json.dumps(answer.to_json(), indent=1) + "\n").encode())
    return answer


def with_planted(report: Report, command: str, workspace: Path, folder: Path, live: Path, outcome: Outcome,
                 run_seconds: float, budget: float | None, say: Say = lambda _: None) -> tuple[Report, float]:
    """The report with what planted values show, and the seconds that it took; `live`: the record of the run before.

    Nothing is planted for a run that stops or is slow, and where the program read no file whose values can be changed.
    """
    files = below(read_folder(live), workspace)
    if not files or outcome.kind in _SILENT:
        return report, 0.0
    unlinked.made(folder)
    seconds = ATLEAST + LENGTHS * run_seconds if budget is None else budget / 2
    place = ProtectedPlace(workspace, folder / COPIES, reads_log=False)
    study = Planting(place, command, files, seconds, say).study()
    write_state(folder / FILE, (json.dumps(study.to_json(), indent=1) + "\n").encode())
    if study.runs < 2:
        return report, study.seconds
    return replace(joined(report, findings_of(study), 0),
                   remarks=(*report.remarks, " ".join(lines(study)))), study.seconds
