"""On request: keeps each call of a jitted training step, and runs one that goes wrong again at once.

Its jaxpr is evaluated once equation by equation, which names the origin of what is not finite (J101), and run with one
change at a time, which tells what takes part in it (X301, X302). The call is kept on disk for `traindx replay`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.experiments.replaying.storing import Storing
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import Kind, Symptom
from traindx_tools.experiments.replaying.telling import Telling
from traindx_tools.experiments.replaying.trying import SECONDS, NotReplayable, tried_on
from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_jax.paths.marked import Marks
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.replaying.following import Following
from traindx_tools.on_jax.replaying.kept import Scenario
from traindx_tools.on_jax.replaying.origin import origin_of
from traindx_tools.on_jax.replaying.stored import keep
from traindx_tools.on_jax.replaying.trials import JaxTrials
from traindx_tools.on_jax.tracing import lowered

MOST_JUMPS, APART = 2, 20
"""As for torch: jumps that are studied in one run, each of another kind, and the calls between two of them."""
MOST_FUNCTIONS = 16


class JaxSnapshot(JaxProbe):
    """Arrays of JAX cannot be changed: only arguments that a call donates are copied. It waits for each loss."""

    name = "snapshot"
    on_request = True
    looks_before = True
    marks_gradients = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._marks: dict[str, tuple[Marks, str]] = {}
        self._following: dict[int, Following] = {}
        self._telling = Telling(scene.recorder)
        self._storing = Storing(scene.recorder, scene.options)
        self._seconds = float(scene.options.get("step_seconds", SECONDS))
        self._jumps: list[int] = []
        self._kinds: set[Kind] = set()
        self._done = False

    def marked(self, marks: Marks) -> None:
        """A gradient was marked while its function was traced."""
        self._marks.update({label: (marks, name) for label, name in marks.names.items()})

    def before_call(self, call: Call) -> None:
        """Keeps the arguments."""
        if self._done or call.watched.kind != "jit":
            return
        known = self._following.get(call.watched.number)
        if known is None and len(self._following) < MOST_FUNCTIONS and call.step == 1:
            known = self._following[call.watched.number] = Following(None, call.watched.name)  # type: ignore[arg-type]
        if known is not None:
            known.about(call)

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What was compiled for a function, with names."""
        known = self._following.get(call.watched.number)
        if known is not None:
            known.traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
            known.loss = None

    def after_call(self, call: Call) -> None:
        """Looks at the loss and the state, in the call itself."""
        import jax

        known = self._following.get(call.watched.number)
        if self._done or known is None:
            return
        if known.traced is None or not call.watched.differentiates:
            del self._following[call.watched.number]
            return
        leaves = call.leaves or jax.tree_util.tree_leaves(call.output)
        symptom = known.made(call, leaves)
        self._telling.passed()
        if symptom is not None and self._wanted(symptom):
            assert known.loss is not None
            self._study(known, symptom, float(np.asarray(leaves[known.loss]).astype(np.float64)))

    def _wanted(self, symptom: Symptom) -> bool:
        if not symptom.finite:
            return True
        if len(self._jumps) >= MOST_JUMPS or (self._jumps and symptom.step - self._jumps[-1] < APART):
            return False
        if symptom.kind in self._kinds or len(self._following) > 1:  # losses of several objectives in turn
            return False
        self._jumps.append(symptom.step)
        self._kinds.add(symptom.kind)
        return True

    def _study(self, known: Following, symptom: Symptom, value: float) -> None:
        path: Path | None = None
        try:
            scenario = known.scenario(symptom, self._marks, value)
            path = self._storing.store(symptom, self._telling.folder,
                                       lambda path, most: keep(scenario, path, most=most))
            if not symptom.finite:
                self._origin(scenario)
            made = tried_on(JaxTrials(scenario), symptom, self.scene.recorder.rank, self._seconds)
            if made is None:
                self._storing.forget(path)
        except NotReplayable as why:
            self._telling.not_studied(symptom, str(why))
            made = None
        except Exception as error:  # noqa: BLE001 - what cannot be replayed costs the study, not the training
            self._telling.not_studied(symptom, f"{type(error).__name__}: {error}")
            made = None
        if made is not None:
            self._told(made, known, path)
        if not symptom.finite:
            self._stop()

    def _told(self, made: Study, known: Following, path: Path | None) -> None:
        self._telling.studied(made)
        if made.symptom.finite:
            self._telling.wait(made, known.course, path)
        else:
            self._telling.all(failed=True)
            self._telling.tell(made)

    def _origin(self, scenario: Scenario) -> None:
        for finding in origin_of(scenario, self.scene.recorder.rank):
            self.scene.recorder.finding(finding)
            say(finding.statement)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What waits to be said of a jump is said: the run did not go on from it."""
        self._telling.all(failed=True)
        return ()

    def finish(self) -> Iterable[Finding]:
        """The same at an end without an error."""
        self._telling.all(failed=False)
        self._stop()
        return ()

    def _stop(self) -> None:
        self._done = True
        for known in self._following.values():
            known.let_go()


