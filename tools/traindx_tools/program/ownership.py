"""Which optimizer holds what, and what became of it since: a run is played, each change of parameters is noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx_tools.program.entities import Optimizer
from traindx_tools.program.gradients import Player, optimizers_of, questions_of, scenarios_of, stores_of
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

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
