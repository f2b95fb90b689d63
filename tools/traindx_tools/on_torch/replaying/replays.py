"""When a step is studied, where the result goes, and when a jump is spoken of: once it is seen whether it came back."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from traindx_tools.experiments.replaying.finding import finding_of
from traindx_tools.experiments.replaying.report import write
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import Kind, Symptom
from traindx_tools.finding import Severity
from traindx_tools.live.notice import say
from traindx_tools.live.step_file import MOST_BYTES, MOST_STEPS, TooLarge, path_for
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.replaying.keeper import Keeper
from traindx_tools.on_torch.replaying.kept import Scenario
from traindx_tools.on_torch.replaying.study import study
from traindx_tools.on_torch.snapshot.rerun import NotReplayable
from traindx_tools.on_torch.snapshot.tape import Tape
from traindx_tools.on_torch.stored.keeping import keep
from traindx_tools.on_torch.stored.modules import Met

MOST_JUMPS = 2
"""Jumps that are studied in one run, each of another kind: one costs up to half a minute, heavy tails have many."""
APART = 20
"""Steps between two of them."""
WAIT = 10
"""Steps after a jump before it is said: a hard batch is gone by then."""


@dataclass
class _Waiting:
    """A studied jump that is not spoken of yet, and how many losses had been seen."""

    study: Study
    seen: int


class Replays:
    """The studies of one process."""

    def __init__(self, scene: Scene, tape: Tape, met: Met) -> None:
        self._scene, self._met = scene, met
        self._files = 0
        self.keeper = Keeper(scene, tape)
        self._jumps: list[int] = []
        self._kinds: set[Kind] = set()
        self._waiting: list[_Waiting] = []

    def loss(self, root: torch.Tensor) -> Scenario | None:
        """Looks at a loss; a jump is studied at once. The scenario of one that is not finite."""
        self._speak(self._passed)
        return self._noticed(self.keeper.backward(root))

    def gradients(self, gradients: list[torch.Tensor]) -> Scenario | None:
        """The same for gradients that an optimizer is about to take."""
        return self._noticed(self.keeper.stepping(gradients))

    def seen(self, kind: Kind) -> Scenario | None:
        """The scenario of what somebody else saw."""
        return self._scenario(self.keeper.symptom(kind))

    def study(self, scenario: Scenario | None) -> None:
        """Studies what is not finite, and says what it came to."""
        if scenario is None:
            return
        made = self._studied(scenario)
        if made is not None:
            self._speak(lambda _: True, failed=True)
            self._tell(made)

    def finish(self, *, failed: bool) -> None:
        """The program ends: jumps that wait are spoken of."""
        self._speak(lambda _: True, failed=failed)
        self.keeper.let_go()

    # ---- studies

    def _noticed(self, symptom: Symptom | None) -> Scenario | None:
        if symptom is None:
            return None
        if not symptom.finite:
            return self._scenario(symptom)
        if len(self._jumps) >= MOST_JUMPS or (self._jumps and symptom.step - self._jumps[-1] < APART):
            return None
        if len(self._scene.optimizers) > 1:  # losses of several objectives in turn
            return None
        if symptom.kind in self._kinds:
            return None
        self._jumps.append(symptom.step)
        self._kinds.add(symptom.kind)
        scenario = self._scenario(symptom)
        made = self._studied(scenario) if scenario is not None else None
        if made is not None:
            self._waiting.append(_Waiting(made, self.keeper.course.seen))
        return None

    def _scenario(self, symptom: Symptom) -> Scenario | None:
        try:
            return self.keeper.scenario(symptom)
        except NotReplayable as why:
            self._not_studied(symptom, str(why))
            return None

    def _studied(self, scenario: Scenario) -> Study | None:
        symptom, recorder = scenario.symptom, self._scene.recorder
        self._stored(scenario)
        try:
            made = study(scenario, recorder.rank)
        except NotReplayable as why:
            self._not_studied(symptom, str(why))
            return None
        except Exception as error:  # noqa: BLE001 - what cannot be replayed costs the study, not the training
            self._not_studied(symptom, f"{type(error).__name__}: {error}")
            return None
        if made is not None:
            recorder.mark("replay", step=symptom.step, symptom=symptom.kind, runs=made.runs,
                          seconds=round(made.seconds, 3), removes=list(made.removing))
            self._written(made)
        return made

    def _stored(self, scenario: Scenario) -> None:
        """Keeps the step on disk, so that it can be replayed when the program is gone."""
        symptom, recorder = scenario.symptom, self._scene.recorder
        folder, most = getattr(recorder, "batch_path", None), self._scene.options.get("step_bytes", MOST_BYTES)
        if not isinstance(folder, Path) or self._files >= MOST_STEPS:
            return
        path = path_for(folder.parent, recorder.rank, symptom.step, symptom.kind)
        try:
            size = keep(scenario, self._met, path, most=int(most))
        except (NotReplayable, TooLarge) as why:
            self._not_stored(symptom, str(why))
        except OSError as error:
            self._not_stored(symptom, f"{error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - what cannot be kept costs the file, not the training
            self._not_stored(symptom, f"{type(error).__name__}: {error}")
        else:
            self._files += 1
            recorder.mark("step", step=symptom.step, symptom=symptom.kind, file=path.name, bytes=size)
            say(f"step {symptom.step} is kept; once the program is gone: traindx replay {shlex.quote(str(path))} --run "
                "CMD")

    def _not_stored(self, symptom: Symptom, why: str) -> None:
        self._scene.recorder.mark("step", step=symptom.step, symptom=symptom.kind, failed=why[:400])
        say(f"step {symptom.step} is not kept on disk: {why}")

    def _not_studied(self, symptom: Symptom, why: str) -> None:
        self._scene.recorder.mark("replay", step=symptom.step, symptom=symptom.kind, failed=why[:400])
        say(f"step {symptom.step}: {symptom.said}; what would change it was not tried: {why}")

    def _written(self, made: Study) -> None:
        path = getattr(self._scene.recorder, "batch_path", None)
        if isinstance(path, Path):
            try:
                write(made, path.parent)
            except OSError as error:
                say(f"the table of step {made.symptom.step} could not be written: {error.strerror or error}")

    # ---- what is said

    def _passed(self, waiting: _Waiting) -> bool:
        return self.keeper.course.seen - waiting.seen >= WAIT

    def _speak(self, due: Callable[[_Waiting], bool], *, failed: bool = False) -> None:
        for waiting in [w for w in self._waiting if due(w)]:
            self._waiting.remove(waiting)
            later = self.keeper.course.seen > waiting.seen
            back = not failed and (not later or self.keeper.course.back(waiting.study.symptom))
            made = replace(waiting.study, recovered=back)
            self._written(made)
            self._tell(made)

    def _tell(self, made: Study) -> None:
        finding = finding_of(made)
        if finding is None:
            return
        self._scene.recorder.finding(finding)
        if finding.severity is not Severity.INFO:
            say(finding.statement)
