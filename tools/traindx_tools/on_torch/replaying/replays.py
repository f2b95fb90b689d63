"""When a step is studied: at once; a jump is spoken of later, when it is seen whether it came back."""

from __future__ import annotations

from pathlib import Path

import torch

from traindx_tools.experiments.replaying.storing import Storing
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import Kind, Symptom
from traindx_tools.experiments.replaying.telling import Telling
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.replaying.keeper import Keeper
from traindx_tools.on_torch.replaying.kept import Scenario
from traindx_tools.on_torch.replaying.study import study
from traindx_tools.on_torch.snapshot.tape import Tape
from traindx_tools.on_torch.stored.keeping import keep
from traindx_tools.on_torch.stored.modules import Met

MOST_JUMPS = 2
"""Jumps that are studied in one run, each of another kind: one costs up to half a minute, heavy tails have many."""
APART = 20
"""Steps between two of them."""


class Replays:
    """The studies of one process."""

    def __init__(self, scene: Scene, tape: Tape, met: Met) -> None:
        self._scene, self._met = scene, met
        self.keeper = Keeper(scene, tape)
        self._telling = Telling(scene.recorder)
        self._storing = Storing(scene.recorder, scene.options)
        self._jumps: list[int] = []
        self._kinds: set[Kind] = set()
        self._path: Path | None = None
        """Where the step of the last study is kept."""

    def loss(self, root: torch.Tensor) -> Scenario | None:
        """Looks at a loss; a jump is studied at once. The scenario of one that is not finite."""
        self._telling.passed()
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
            self._telling.all(failed=True)
            self._telling.tell(made)

    def finish(self, *, failed: bool) -> None:
        """The program ends: jumps that wait are spoken of."""
        self._telling.all(failed=failed)
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
            self._telling.wait(made, self.keeper.course, self._path)
        return None

    def _scenario(self, symptom: Symptom) -> Scenario | None:
        try:
            return self.keeper.scenario(symptom)
        except NotReplayable as why:
            self._telling.not_studied(symptom, str(why))
            return None

    def _studied(self, scenario: Scenario) -> Study | None:
        symptom = scenario.symptom
        self._path = self._storing.store(symptom, self._telling.folder,
                                         lambda path, most: keep(scenario, self._met, path, most=most))
        try:
            made = study(scenario, self._scene.recorder.rank)
        except NotReplayable as why:
            self._telling.not_studied(symptom, str(why))
            return None
        except Exception as error:  # noqa: BLE001 - what cannot be replayed costs the study, not the training
            self._telling.not_studied(symptom, f"{type(error).__name__}: {error}")
            return None
        if made is not None:
            self._telling.studied(made)
        else:
            self._storing.forget(self._path)
        return made
