"""What backward computes reaches a step.

Gradients are computed to be stepped with. They are lost where they are cleared in each micro-batch while the step is
taken once a window, where they are cleared between backward and step, where the step stands before backward or
outside the loop that clears, and where its condition never holds. A pass whose gradients another optimizer uses is
not lost: what a critic's loss leaves in a generator may be cleared. Passes that are never used on purpose (an attack
on the input) have other passes beside them that are.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import by_hand, uses, weakest
from traindx_tools.program.gradients import Pass, Use, played, reaches
from traindx_tools.program.moments import Section, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C113", "C161"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every backward pass and every step."""
    for run in by_hand(program):
        yield from _impossible(run)
        yield from _lost_in_part(program, run)
        yield from _without_gradients(program, run)


def _lost_in_part(program: Program, run: Section) -> Iterator[Breach]:
    """Some passes of a line are used and as many are cleared unused: a window that is cleared in each turn.

    Where gradients are written by hand, what was cleared was taken out before.
    """
    if Moment.WRITTEN in run.has:
        return
    scenarios = [s for s in played(program, run) if not s.overflows]
    passes = [_by_act(s.passes) for s in scenarios]
    steps = {id(p.act): u.act for s in reversed(scenarios) for u in reversed(s.steps) for p in u.passes}
    for act in {id(p.act): p.act for s in scenarios for p in s.passes}.values():
        told = [by_act.get(id(act), []) for by_act in passes]
        with_use = [t for t in told if any(p.used for p in t)]
        if not with_use or not all(_half_lost(t) for t in with_use):
            continue
        clear = next(p.cleared for p in with_use[0] if p.cleared is not None and not p.used)
        step = steps.get(id(act))
        if step is None or clear is None or any(id(o) in s.handed for s in scenarios for o in step.optimizers):
            continue
        here, there = training_loop(run.path_to(act)), run.path_to(step)
        if here is not None and here not in there:
            yield Breach(
                "C161",
                f"{step.name} at {step.at} stands outside the loop at line {here.at.line}, in which every iteration "
                f"clears the gradients (line {clear.at.line}): only the last batch's gradient is ever applied",
                step.at, weakest(step.known, act.known), {"kind": "outside the loop", "backward_line": act.at.line},
                remedy=Remedy("behind backward", step, act, "nested"))
        elif here is not None and here in run.path_to(clear):
            yield Breach(
                "C113",
                f"{clear.owner}.{clear.name}() at {clear.at} clears gradients that are still needed: the step at line "
                f"{step.at.line} is taken only once a window: the gradients of all but the last micro-batch are lost",
                clear.at, weakest(step.known, act.known), {"kind": "in every micro-batch", "step_line": step.at.line},
                remedy=Remedy("clear behind step", clear, step))


def _by_act(those: list[Pass]) -> dict[int, list[Pass]]:
    found: dict[int, list[Pass]] = {}
    for one in those:
        found.setdefault(id(one.act), []).append(one)
    return found


def _half_lost(those: list[Pass]) -> bool:
    lost = sum(p.cleared is not None and not p.used for p in those)
    return lost >= sum(p.used for p in those) and lost > 0


def _without_gradients(program: Program, run: Section) -> Iterator[Breach]:
    """A step that only ever meets what was cleared."""
    passes = [a for a, _ in run.acts(Moment.BACKWARD)]
    fed = {id(u.optimizer) for s in played(program, run) for u in s.steps if u.passes}
    for act, optimizer, scenarios in uses(program, run, lambda p: p.steps):
        after = [[u for u in s if u.cleared is not None] for s in scenarios]
        if id(optimizer) in fed or not all(after) or not all(_empty(u) for s in after for u in s):
            continue
        near = training_loop(run.path_to(act))
        mine = [a for a in passes if reaches(a, optimizer) and (near is None or near in run.path_to(a))]
        if not mine:
            continue
        use = after[0][-1]
        order = [a for a, _ in run.acts(Moment.BACKWARD, Moment.CLEAR, Moment.STEP)]
        clear = use.cleared
        if clear is None:
            continue
        if order.index(mine[-1]) < order.index(clear) < order.index(act):
            yield Breach(
                "C113",
                f"{clear.owner}.{clear.name}() at {clear.at} clears gradients that are still needed: it stands between "
                f"backward() at line {mine[-1].at.line} and the step at line {act.at.line}, which finds nothing",
                clear.at, act.known, {"kind": "between backward and step", "step_line": act.at.line}, Severity.CRITICAL,
                Remedy("clear behind step", clear, act))
        else:
            yield Breach(
                "C161",
                f"{act.name} at {act.at} stands between the clearing of the gradients at line {clear.at.line} and "
                f"backward() at line {mine[0].at.line}: it never sees a gradient",
                act.at, act.known, {"kind": "before backward", "backward_line": mine[0].at.line},
                remedy=Remedy("behind backward", act, mine[0]))


def _empty(use: Use) -> bool:
    return not use.passes and not use.stale


def _impossible(run: Section) -> Iterator[Breach]:
    """A step under a condition that cannot hold."""
    for act, path in run.acts(Moment.STEP):
        arm = next((s for s in path if s.kind == "arm" and s.condition.kind == "never"), None)
        loop = training_loop(path) if arm is not None else None
        backward = next((a for a, p in run.acts(Moment.BACKWARD) if loop in p), None) if loop is not None else None
        if arm is not None and arm.condition.text and backward is not None and loop is not None:
            yield Breach("C161", f"{act.name} at {act.at} is never reached: {arm.condition.text} cannot hold", act.at,
                act.known, {"kind": "never", "backward_line": backward.at.line})
