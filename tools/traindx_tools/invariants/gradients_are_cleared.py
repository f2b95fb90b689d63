"""Gradients that a step has used are cleared before more are added.

`backward` adds to `.grad`. Where nothing clears what a step has used, each step uses the sum of the gradients of all
batches so far: the gradient norm grows with the step number and training diverges or oscillates. The invariant plays
the program: it follows helpers, closures, several optimizers, windows and engines that clear by themselves. What a
module's own `zero_grad` leaves out (another module of the same optimizer) counts as not cleared.

In a game of two optimizers every backward fills the gradients of all networks that its loss runs through: where a
discriminator's are not cleared between the generator's step and its own, it is also trained to believe the generator.
Of three and more optimizers some share a loss on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import Uses, by_hand, uses, weakest
from traindx_tools.program.entities import Optimizer
from traindx_tools.program.gradients import Use, optimizers_of
from traindx_tools.program.moments import Act, Section, conditions_within, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = (*pages("step_order", ("C101",)), *pages("torch", ("C167",)))
MOST_CLEAN = 0.5
"""Share of steps that may meet fresh gradients alone: once an epoch the first of many does."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every step that is taken again and again."""
    for run in by_hand(program):
        for act, optimizer, scenarios in uses(program, run, lambda p: p.steps):
            loop = training_loop(run.path_to(act))
            if loop is not None and all(_stale(s) for s in scenarios):
                yield _breach(run, loop, act, optimizer, scenarios)
            elif loop is not None and len(optimizers_of(run)) == 2:
                yield from _of_another_loss(act, scenarios, optimizer)


def _of_another_loss(act: Act, scenarios: Uses, optimizer: Optimizer) -> Iterator[Breach]:
    """A step that also applies what another player has stepped with; where unknown code made a loss, nobody knows."""
    found = [next((u.foreign for u in s if u.foreign), None) for s in scenarios]
    foreign = found[0] if found and None not in found else None
    if foreign is None or foreign.act.models is None or optimizer.holds is None:
        return
    yield Breach(
        "C167", f"{act.owner}.step() at {act.at} also applies the gradients of the loss sent backward at line "
        f"{foreign.act.at.line}, with which another optimizer has stepped: nothing clears them in between",
        act.at, act.known, {"kind": "kept", "backward_line": foreign.act.at.line})


def _stale(of_one: Sequence[Use]) -> bool:
    """Whether most steps of a scenario, and its last, meet gradients that were used already."""
    those = [u for u in of_one if u.passes]
    return len(those) > 1 and those[-1].stale and sum(u.stale for u in those) >= MOST_CLEAN * len(those)


def _breach(run: Section, loop: Section, act: Act, optimizer: Optimizer, scenarios: Uses) -> Breach:
    use = next(u for s in scenarios for u in s if u.stale and u.passes)
    backward = use.passes[-1].act
    cleared = [a for a, path in run.acts(Moment.CLEAR) if loop in path]
    name = act.owner if act.scaler is None else "the scaler's optimizer"
    kind = "never" if not cleared or use.leftover is not None else "outside the loop that steps"
    kind = "outside the loop that steps" if use.cleared is not None and not cleared else kind
    said = "never cleared in the loop" if kind == "never" else "cleared only outside the loop"
    missing = "zero_grad() is not called"
    if use.leftover is not None:
        said, kind = "never cleared in the loop", use.leftover.name
        missing = (f"zero_grad() is called on other modules only, not on the {use.leftover.name} made at "
                   f"{use.leftover.made}")
    windowed = any(c.kind != "always" for c in conditions_within(run.path_to(act), loop))
    return Breach(
        "C101",
        f"{name}.step() at {act.at} uses gradients that are {said} at {loop.at}: backward() at line {backward.at.line} "
        f"adds to them in every iteration and {missing}",
        act.at,
        weakest(act.known, optimizer.known),
        {"kind": kind, "optimizer": name, "backward_line": backward.at.line, "loop_line": loop.at.line},
        remedy=Remedy("clear", act, backward, "window" if windowed else ""),
    )
