"""A stored step in a process of its program: brought in, run as it is, with each change, and looked at."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.experiments.replaying.study import UPDATE, Study
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.live.step_file import Stored
from traindx_tools.on_torch.nonfinite.events import culprit
from traindx_tools.on_torch.nonfinite.reasons import reason_of
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.replaying.kept import Scenario, data_of
from traindx_tools.on_torch.replaying.quiet import unnoticed_by
from traindx_tools.on_torch.replaying.study import study
from traindx_tools.on_torch.rules import t101_nonfinite_origin
from traindx_tools.on_torch.snapshot.replay import Replay, Replayed
from traindx_tools.on_torch.stored.bringing import Brought, bring
from traindx_tools.on_torch.stored.modules import Met
from traindx_tools.on_torch.stored.observing import Observed, Observing

SHARE = 0.8
"""Of the time, for the changes; the rest is for what is looked at."""


@dataclass
class Outcome:
    """What a stored step came to. `why`: why it cannot be replayed, "" where it was."""

    why: str = ""
    study: Study | None = None
    observed: Observed | None = None
    origin: str = ""
    """Why that of what is not finite is not known; where it is, T101 says it."""
    changed: tuple[str, ...] = ()
    """Plain state of the program that was set back to what it was at the step."""
    remarks: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """For a file."""
        return {"why": self.why, "study": None if self.study is None else self.study.to_json(),
                "observed": None if self.observed is None else self.observed.to_json(), "origin": self.origin,
                "changed": list(self.changed), "remarks": list(self.remarks)}


def replay(stored: Stored, met: Met, optimizer: torch.optim.Optimizer, scene: Scene, seconds: float) -> Outcome:
    """Everything that one step can tell. Raises NotFound where the program does not have its modules."""
    began = time.monotonic()
    brought = bring(stored, met, optimizer)
    made = Outcome(changed=brought.changed, remarks=list(brought.remarks))
    try:
        made.study = study(brought.scenario, scene.recorder.rank, SHARE * seconds)
        if made.study is None:
            made.why = "run again as it is, the step does not show what was seen of it"
    except NotReplayable as why:
        made.why = _why(str(why), brought)
    _look(made, brought, scene, seconds - (time.monotonic() - began))
    return made


def _why(why: str, brought: Brought) -> str:
    """With the plain state that is otherwise in this process: what the code reads beside it is the likely reason."""
    if not brought.changed:
        return why
    return (f"{why}. The model's code reads state of the program that changes while it trains, and was set to what it "
            f"was after the step: {', '.join(brought.changed[:6])}")


def _look(made: Outcome, brought: Brought, scene: Scene, seconds: float) -> None:
    """Outputs, gradients and the origin, as far as there is time."""
    scenario = brought.scenario
    if seconds <= 0:
        made.remarks.append("there was no time left to look at modules and gradients")
        return
    try:
        with unnoticed_by(scenario.passes.models()) as set_back:
            values = scenario.update.values if scenario.update is not None and \
                scenario.symptom.kind == "parameters" else {}
            made.observed = Observing(scenario.passes, values).observe(gradients=scenario.symptom.kind != "loss")
            set_back()
    except NotReplayable as why:
        made.remarks.append(f"modules and gradients were not looked at: {why}")
    if not scenario.symptom.finite and not made.why:
        made.origin = _origin(scenario, scene, made.study)


def _origin(scenario: Scenario, scene: Scene, studied: Study | None) -> str:
    root = scenario.passes.roots[-1].slot
    try:
        found = _traced(scenario, scene, root)
        event = culprit(found.events)
        if event is None:
            return ""
        if studied is not None and studied.at == UPDATE and event.kind == "parameter":
            return "a parameter was not finite before the step's passes: the update before it made that"
        origin = t101_nonfinite_origin.Origin(event, reason_of(event), found.seen_in, scenario.symptom.step, 0,
                                              scene.recorder.rank, found.others, False)
        for finding in t101_nonfinite_origin.check(origin):
            scene.recorder.finding(finding)
        return ""
    except NotReplayable as why:
        return f"not found: {why}"


def _traced(scenario: Scenario, scene: Scene, root: int) -> Replayed:
    needed, update = scenario.passes.needed, scenario.update
    scene.batch = tuple(data_of(needed))
    again = Replay(scene, next((e.place for e in needed if e.place is not None), None))
    if scenario.symptom.kind == "loss":
        return again.forward_of(scenario.passes.noted, root)
    if scenario.symptom.kind == "gradient" or update is None:
        return again.backward_of(scenario.passes.noted, root)
    for parameter, gradient in zip(update.kept.parameters, update.gradients, strict=True):
        parameter.grad = None if gradient is None else gradient.detach().clone()
    return again.step(update.kept)
