"""What the loss scale multiplies, a step divides again, and the scale adapts.

`scaler.step(optimizer)` divides all gradients of the optimizer by the loss scale and leaves an overflow out;
`scaler.update()` then lowers the scale. A plain step applies gradients that are larger by the scale. A loss that goes
backward unscaled beside a scaled one is too small by it. `unscale_` at each part of a window divides what was divided
already: torch raises. A plain step behind it applies infinite gradients, which `scaler.step` would leave out. Gradients
that are values (`autograd.grad` of a scaled loss) keep the scale until the program divides them by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import by_hand, uses
from traindx_tools.program.gradients import Use, played
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C142", "C279"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every step that meets scaled gradients, and at every scaler."""
    for run in by_hand(program):
        for act, _, scenarios in uses(program, run, lambda p: p.steps):
            met = [s for s in scenarios if any(u.passes for u in s)]
            if act.scaler is None and act.known is not Known.GUESSED and met and all(_all_scaled(s) for s in met):
                yield _plain_step(act, met[0])
            if act.scaler is not None and act.scaler.enabled is not False and met and all(_mixed(s) for s in met):
                yield _unscaled_loss(act, met[0])
        yield from _past_the_scaler(program, run)
        yield from _unscaled_twice(program, run)
    yield from _never_updated(program)
    for at in program.scaled_gradients:
        yield Breach(
            "C279", f"{at.quote} at {at} differentiates a loss that is multiplied by the loss scale, nothing divides"
            " the gradients by it: a penalty on them is one on the scale", at, measured={"kind": "values"})


def _past_the_scaler(program: Program, run: Section) -> Iterator[Breach]:
    """Gradients that unscale_ has divided, and that a plain step takes where they are not finite, too."""
    told = [p for p in played(program, run) if p.overflows]
    if not told or not run.acts(Moment.UNSCALE) or not all(
            any(u.passes and u.act.scaler is None and u.came == {True} and u.scales == {False} for u in p.steps)
            for p in told) or any(p.handed for p in told):
        return
    step = next(u.act for u in told[0].steps if u.passes and u.act.scaler is None)
    unscale = run.acts(Moment.UNSCALE)[0][0]
    if step.known is Known.GUESSED or unscale.scaler is None or unscale.scaler.enabled is False:
        return
    yield Breach(
        "C142", f"{step.owner}.step() at {step.at} is taken past the scaler that unscales at line {unscale.at.line}: "
        "gradients that have overflowed are applied, which scaler.step(optimizer) would leave out", step.at, step.known,
        {"kind": "past the scaler", "unscale_line": unscale.at.line})


def _unscaled_twice(program: Program, run: Section) -> Iterator[Breach]:
    told = [p for p in played(program, run) if not p.overflows and p.updates]
    act = told[0].twice[0] if told and all(p.twice for p in told) and not any(p.handed for p in told) else None
    around = loops(run.path_to(act)) if act is not None and len(act.optimizers) == 1 else ()
    if act is not None and around and {Moment.UPDATE, Moment.BACKWARD} <= around[-1].has and (
            act.scaler is not None and act.scaler.enabled is not False):
        yield Breach(
            "C142", f"{act.owner}.unscale_() at {act.at} runs again before {act.owner}.update(): the second call raises"
            ", and what the first has divided is mixed with scaled gradients", act.at, act.known, {"kind": "twice"})


def _all_scaled(those: Sequence[Use]) -> bool:
    fresh = [u for u in those if u.passes]
    return bool(fresh) and all(u.scales == {True} for u in fresh)


def _mixed(those: Sequence[Use]) -> bool:
    return any(u.came == {True, False} and any(p.act.scaled is False for p in u.passes) for u in those)


def _plain_step(step: Act, those: Sequence[Use]) -> Breach:
    backward = next(u for u in those if u.passes).passes[-1].act
    return Breach(
        "C142",
        f"{step.owner}.step() at {step.at} applies gradients that are still multiplied by the loss scale (scaled at "
        f"line {backward.at.line}): scaler.step(optimizer) would divide them first and skip overflows",
        step.at, step.known, {"kind": "step", "backward_line": backward.at.line})


def _unscaled_loss(step: Act, those: Sequence[Use]) -> Breach:
    use = next(u for u in those if u.came == {True, False} and any(p.act.scaled is False for p in u.passes))
    plain = next(p.act for p in use.passes if p.act.scaled is False)
    scaled = next((p.act for p in use.passes if p.act.scaled), step)
    return Breach(
        "C279",
        f"{plain.owner}.backward() at {plain.at} is not scaled: {step.owner}.step() divides its gradients by the loss "
        f"scale like those of the scaled loss at line {scaled.at.line}: they are too small by that factor",
        plain.at, plain.known, {"kind": "plain", "loss": plain.owner[:60], "scaled_line": scaled.at.line},
        remedy=Remedy("scale", plain, step))


def _never_updated(program: Program) -> Iterator[Breach]:
    acts = [a for run in program.runs for a, _ in run.acts(Moment.UPDATE, Moment.HANDED, Moment.STEP)]
    if any(a.moment is Moment.UPDATE or (a.moment is Moment.HANDED and a.scaler) for a in acts):
        return
    step = next((a for a in acts if a.scaler is not None and a.scaler.enabled is not False), None)
    if step is not None:
        yield Breach(
            "C142",
            f"The scaler that steps at {step.at} is never updated: without scaler.update() the loss scale stays at its "
            "first value and an overflow repeats for ever",
            step.at, step.known, {"kind": "update"}, remedy=Remedy("update", step))
