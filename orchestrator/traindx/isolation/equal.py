"""Two runs that should be equal: the same command in fresh copies, recording digests of what it computes."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.experiment_place import ProtectedPlace
from traindx.isolation.kept import Kept
from traindx.isolation.place import place_for, to_its_end
from traindx.isolation.request import Request
from traindx_tools import unlinked
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.outcomes import Items, OutOfRuns
from traindx_tools.experiments.isolating.parting.equal_runs import Arm, EqualRuns, Ran, compare_runs
from traindx_tools.experiments.isolating.parting.recording import read_recordings
from traindx_tools.experiments.isolating.parting.remedies import REMEDIES, recorded
from traindx_tools.experiments.isolating.rules import x202_runs_part
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.isolating.symptom import output_of
from traindx_tools.experiments.live.applied import applied_in
from traindx_tools.experiments.trace import Trace
from traindx_tools.finding import Finding

DONE = "run.json"


@dataclass(frozen=True)
class EqualAnswer:
    """What was found, and the folder with the recordings of each run."""

    result: EqualRuns
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.result.to_json(), "folder": str(self.folder), "findings": [f.to_json() for f in self.findings]}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """X202 where they part: evidence that a diagnosis can cite."""
        return tuple(x202_runs_part.check(self.result, f"isolation {self.folder.name}"))


def isolate_runs(request: Request, steps: int = 100) -> EqualAnswer:
    """Runs the command until two runs part, then with each remedy. Raises TraindxError.

    `steps`: optimizer steps, or calls of compiled functions for JAX, that are recorded.
    """
    request.checked()
    if steps < 1:
        raise BadUsage(f"--steps is a number from 1 on, got {steps}")
    with place_for(request.workspace) as place:
        told = [request.command, f"{request.seconds:g}", str(steps), place.fingerprint]
        default = request.workspace / "scratch" / "debug" / f"isolate-runs-{hashed(told)[:8]}"
        folder = Kept.of(request.out or default).folder
        runs = _Runs(request, place, folder / hashed(told)[:8], steps)
        return EqualAnswer(compare_runs(runs, runs.told), folder)


class _Runs:
    """Runs, and those of before that are still on disk."""

    def __init__(self, request: Request, place: ProtectedPlace, folder: Path, steps: int) -> None:
        self.request, self.place, self.folder, self.steps = request, place, folder, steps
        self.made = 0

    def __call__(self, part: Items, number: int) -> Ran:
        names = "-".join(REMEDIES[i].name.replace(" ", "-") for i in sorted(part)) or "as-it-is"
        kept = self.folder / names / str(number)
        if not (kept / DONE).is_file():
            if self.made >= self.request.runs:
                raise OutOfRuns(f"{self.made} runs were made, as many as were allowed")
            self.made += 1
            unlinked.made(kept.parent)  # a link on the way is found before anything is removed
            shutil.rmtree(kept, ignore_errors=True)
            prepared = recorded(part, self.request.command, self.request.workspace, self.steps)
            problem = self._keep(self.place.run(prepared, to_its_end, seconds=self.request.seconds), kept)
            if problem:  # not kept as done: what was missing may be there the next time
                return Ran({}, "", problem)
        output = (kept / "output.log").read_text(encoding="utf-8", errors="replace")
        applied = json.loads((kept / DONE).read_text(encoding="utf-8"))["applied"]
        return Ran(read_recordings(kept), output, "", applied)

    def _keep(self, trace: Trace, kept: Path) -> str:
        unlinked.made(kept)
        for path in (trace.folder / "live").glob("digests-rank*.jsonl"):
            shutil.copy2(path, kept / path.name)
        (kept / "output.log").write_text(output_of(trace), encoding="utf-8")
        ended = f"ended with exit code {trace.exit_code}" + (f": {trace.error}" if trace.error else "")
        problem = f"the run was stopped ({trace.stopped})" if trace.stopped else "" if trace.exit_code == 0 else (
            f"the run {ended}")
        if not problem:
            told = {c: {"times": a.times, "problem": a.problem} for c, a in applied_in(trace.folder / "live").items()}
            (kept / DONE).write_text(json.dumps({"applied": told, "seconds": trace.seconds}), encoding="utf-8")
        return problem

    def told(self, arm: Arm) -> None:
        """For progress."""
        how = " and ".join(arm.remedies) or "as it is"
        self.request.told(f"{how}: {arm.runs} runs, " + (arm.problem or ("equal" if arm.equal else "they part")))
