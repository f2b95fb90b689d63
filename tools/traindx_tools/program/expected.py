"""The timeline that a text leads one to expect: its main run played once, as a live process would be noted."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.program.entities import Model
from traindx_tools.program.gradients import Player, optimizers_of, questions_of, stores_of
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment, Timeline

_NOTED = frozenset({Moment.BATCH, Moment.LOSS, Moment.BACKWARD, Moment.CLEAR, Moment.CLIP, Moment.STEP,
                    Moment.SCHEDULE})


@dataclass(eq=False)
class _Noting(Player):
    timeline: Timeline = field(default_factory=Timeline)
    steps: int = 0
    modes: list[tuple[tuple[Model, ...] | None, bool]] = field(default_factory=list)

    def _act(self, act: Act) -> str:
        left = super()._act(act)
        if act.moment is Moment.MODE and act.training is not None:
            self.modes.append((act.models, act.training))
        moment = self._forward(act) if act.moment is Moment.FORWARD else act.moment if act.moment in _NOTED else None
        if moment is not None:
            self.timeline.note(moment, self.steps, str(act.at))
            self.steps += moment is Moment.STEP
        return left

    def _forward(self, act: Act) -> Moment:
        training = is_training(act, self.modes)
        if act.gradients is False:
            return Moment.EVALUATION_IN_TRAIN if training else Moment.EVALUATION
        return Moment.FORWARD if training else Moment.FORWARD_IN_EVAL


def is_training(act: Act, modes: list[tuple[tuple[Model, ...] | None, bool]]) -> bool:
    """The mode of a called module: that of the last change of mode that concerns it, training where there is none."""
    parts = frozenset(i for m in act.models or () for i in m.inside)
    concerned = (mode for models, mode in reversed(modes) if models is None or any(parts & m.inside for m in models))
    return next(concerned, True)


def main_run(program: Program) -> Section | None:
    """The run that updates weights; of several the one with the most kinds of moments."""
    training = [r for r in program.runs if {Moment.BACKWARD, Moment.STEP} <= r.has]
    return max(training, key=lambda r: len(r.has), default=None)


def expected_timeline(program: Program) -> Timeline:
    """The moments of the main run, in order, each open question answered with yes; empty where nothing trains."""
    run = main_run(program)
    if run is None:
        return Timeline()
    optimizers = optimizers_of(run)
    questions, periods = questions_of(run)
    player = _Noting(dict.fromkeys(questions, True), periods, optimizers, stores_of(optimizers))
    player.play(run)
    player.timeline.close()
    return player.timeline
