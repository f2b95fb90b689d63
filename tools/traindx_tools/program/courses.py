"""A run played: in which mode modules are called, which optimizer holds what, and the timeline that is expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx_tools.program.entities import Model, Optimizer
from traindx_tools.program.gradients import Player, optimizers_of, questions_of, scenarios_of, stores_of
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment, Timeline


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


_NOTED = frozenset({Moment.MADE, Moment.STEP, Moment.HANDED, Moment.PARAMETERS})


@dataclass(eq=False)
class _Owning(Player):
    acts: list[Act] = field(default_factory=list)

    def _act(self, act: Act) -> str:
        left = super()._act(act)
        if act.moment in _NOTED:
            self.acts.append(act)
        return left


def courses(program: Program, run: Section) -> list[list[Act]]:
    """For each scenario: where optimizers are made, step or are handed on and where parameters change, in order."""
    memo: dict[int, list[list[Act]]] = program.memo.setdefault("ownership", {})
    if id(run) not in memo:
        optimizers = optimizers_of(run)
        questions, periods = questions_of(run, frozenset())
        memo[id(run)] = found = []
        for answers in scenarios_of(questions):
            player = _Owning(answers, periods, optimizers, stores_of(optimizers))
            player.play(run)
            found.append(player.acts)
    return memo[id(run)]


@dataclass(frozen=True, eq=False)
class Held:
    """An optimizer at a change of what it holds."""

    made: Act
    optimizer: Optimizer
    change: Act
    steps: bool
    """It is stepped after the change, or handed to code that does."""
    told: bool
    """After the change another optimizer is made, or this one is given a further group."""


def made_before(program: Program) -> list[Act]:
    """Where optimizers are made before every run, and no run makes another one over the same modules."""
    found: list[Act] | None = program.memo.get("made before")
    if found is None:
        made = [o for run in program.runs for a, _ in run.acts(Moment.MADE) for o in a.optimizers]
        again = frozenset(i for o in made for i in o.parts)
        found = [a for a in program.before if not any(o.parts & again for o in a.optimizers)]
        program.memo["made before"] = found
    return found


def held_at(course: Sequence[Act], kinds: frozenset[str], before: Sequence[Act] = ()) -> Iterator[Held]:
    """Each change of one of these kinds, for each optimizer that was made before it and holds what changes. `before`:
    where optimizers are made before the run."""
    for at, act in enumerate(course):
        change = act.change
        if change is None or change.kind not in kinds:
            continue
        earlier = [*before, *(a for a in course[:at] if a.moment is Moment.MADE)]
        alive = {id(o): (a, o) for a in earlier for o in a.optimizers}
        later = course[at + 1:]
        for made, optimizer in alive.values():
            if optimizer.parts & change.parts:
                again = any(a.moment is Moment.MADE for a in later)
                mine = [a for a in later if any(o is optimizer for o in a.optimizers)]
                given = any(a.change is not None and a.change.kind == "given" for a in mine)
                steps = any(a.moment in (Moment.STEP, Moment.HANDED) for a in mine)
                yield Held(made, optimizer, act, steps, again or given)


_EXPECTED = frozenset({Moment.BATCH, Moment.LOSS, Moment.BACKWARD, Moment.CLEAR, Moment.CLIP, Moment.STEP,
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
        moment = self._forward(act) if act.moment is Moment.FORWARD else act.moment if act.moment in _EXPECTED else None
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
