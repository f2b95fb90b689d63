"""In which mode modules are called: a run is played, each change of mode and each forward pass is noted."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.program.entities import Model
from traindx_tools.program.gradients import Player, optimizers_of, questions_of, scenarios_of, stores_of
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment


@dataclass(frozen=True, eq=False)
class Called:
    """One forward pass, or one change of mode in between (`model` None)."""

    act: Act
    model: Model | None = None
    modes: frozenset[bool | None] = frozenset()
    """The modes of the layers that act by mode (of all parts where those are not known): training or not, None unknown.
    """
    by: Act | None = None
    """What set the mode last; None where nothing did: a new module is in training mode."""
    after_training: bool = False
    """A loss went backward before it."""


@dataclass(eq=False)
class _Modes(Player):
    calls: list[Called] = field(default_factory=list)
    parts: dict[int, tuple[bool | None, Act]] = field(default_factory=dict)
    rest: tuple[bool | None, Act | None] = (True, None)
    read: dict[str, bool | None] = field(default_factory=dict)
    """The modes that were read and kept, by their places."""

    def _act(self, act: Act) -> str:
        left = super()._act(act)
        if act.moment is Moment.READ:
            modes = {self.parts.get(i, self.rest)[0] for m in act.models or () for i in m.inside}
            self.read[str(act.at)] = modes.pop() if len(modes) == 1 else None
        elif act.moment is Moment.MODE:
            mode = self.read.get(act.restores, act.training) if act.restores else act.training
            if act.models is None:
                self.parts, self.rest = {}, (None, act)
            else:
                self.parts.update((i, (mode, act)) for m in act.models for i in m.inside)
            self.calls.append(Called(act))
        elif act.moment is Moment.FORWARD and act.models:
            model = act.models[0]
            found = [self.parts.get(i, self.rest) for i in (model.by_mode or model.inside)]
            by = next((a for _, a in found if a is not None), None)
            self.calls.append(Called(act, model, frozenset(mode for mode, _ in found), by, bool(self.told.passes)))
        return left


def calls(program: Program, run: Section) -> list[list[Called]]:
    """The forward passes and changes of mode of a run, in order, for each scenario."""
    memo: dict[int, list[list[Called]]] = program.memo.setdefault("modes", {})
    if id(run) not in memo:
        optimizers = optimizers_of(run)
        questions, periods = questions_of(run)
        memo[id(run)] = found = []
        for answers in scenarios_of(questions):
            player = _Modes(answers, periods, optimizers, stores_of(optimizers))
            player.play(run)
            found.append(player.calls)
    return memo[id(run)]


def passes_of(program: Program, run: Section, act: Act) -> list[list[Called]]:
    """The passes of one line, in order, for each scenario that has some."""
    key = "passes", id(program)
    grouped: list[dict[int, list[Called]]] | None = run.memo.get(key)
    if grouped is None:
        grouped = run.memo[key] = []
        for scenario in calls(program, run):
            by_act: dict[int, list[Called]] = {}
            for call in scenario:
                by_act.setdefault(id(call.act), []).append(call)
            grouped.append(by_act)
    return [by_act[id(act)] for by_act in grouped if id(act) in by_act]


def is_trained(model: Model, run: Section) -> bool | None:
    """Whether an optimizer that steps in a run holds parameters of a module; None where it is not known what it holds.
    """
    if model.frozen:
        return False
    held = [o.holds for o in optimizers_of(run)]
    if any(m.inside & model.inside for holds in held for m in holds or ()):
        return True
    return None if None in held else False
