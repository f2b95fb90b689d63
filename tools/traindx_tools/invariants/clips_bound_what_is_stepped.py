"""A clip bounds the gradients that the next step uses.

It works on what `.grad` holds at that moment. Before backward it clips the zeros that were left; after the step it
clips what was used already; while the loss scale is still in the gradients every step shrinks to max_norm / scale
(also where the unscaling runs in some steps only and the clip in all). A bound that is multiplied by the scale is in
the right units, an infinite one only measures. In a chain of optax what bounds stands before what normalises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import Uses, by_hand, uses, weakest
from traindx_tools.knowledge.ranges import chains
from traindx_tools.program.entities import Optimizer
from traindx_tools.program.gradients import Use
from traindx_tools.program.moments import Act, Section, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C106", "C135", "C160", "C524"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every clip, and at every chain of transformations."""
    for run in by_hand(program):
        told = [(a, o, s) for a, o, s in uses(program, run, lambda p: p.clips) if not a.is_measure]
        for clip in {str(a.at): a for a, _ in run.acts(Moment.CLIP) if a.cut is not None}.values():
            yield _of_nothing(clip)
        for act, optimizer, scenarios in told:
            others = [s for a, o, s in told if o is optimizer and a is not act]
            yield from _breaches(run, act, optimizer, scenarios, others)
    for run in program.runs:
        yield from _chained(run)


def _of_nothing(clip: Act) -> Breach:
    spent = clip.cut.text if clip.cut is not None else ""
    when = "in the first turn of the loop" if spent == str(clip.at) else f"at {spent}"
    return Breach(
        "C135", f"{clip.name} at {clip.at} is given an iterator over the parameters that was gone through {when} "
        "already: it bounds nothing", clip.at, clip.known, {"kind": "used up"})


def _breaches(run: Section, clip: Act, optimizer: Optimizer, scenarios: Uses, others: Sequence[Uses]
              ) -> Iterator[Breach]:
    loop = training_loop(run.path_to(clip))
    step = _next_step(run, clip, optimizer, loop)
    if step is None:
        return
    if all(_scaled(s) for s in scenarios) and not clip.scaled and step.scaler is not None and (
            step.scaler.enabled is not False):
        yield _before_unscale(run, clip, step, scenarios)
    if loop is None or any(_meets(s) for s in others):
        return
    backward = next((a for a, p in run.acts(Moment.BACKWARD) if loop in p), None)
    if backward is not None and _always(scenarios, lambda u: not u.passes and not u.stale and u.cleared is not None):
        yield Breach(
            "C160",
            f"{clip.name} at {clip.at} runs before backward() at line {backward.at.line}: it clips gradients that were "
            f"just cleared, and the step at line {step.at.line} uses unclipped ones",
            clip.at, weakest(clip.known, optimizer.known),
            {"kind": "clip", "backward_line": backward.at.line, "step_line": step.at.line},
            remedy=Remedy("behind backward", clip, backward))
    elif _always(scenarios, lambda u: u.stale and not u.passes):
        yield Breach(
            "C135",
            f"{clip.name} at {clip.at} clips the gradients after optimizer.step() at line {step.at.line} has used "
            "them: clipping has no effect",
            clip.at, weakest(clip.known, optimizer.known), {"kind": "clip", "step_line": step.at.line},
            remedy=Remedy("before", clip, step))


def _next_step(run: Section, clip: Act, optimizer: Optimizer, loop: Section | None) -> Act | None:
    """The step of an optimizer that follows a clip in the loop; the first of the next turn where none does."""
    acts = [a for a, p in run.acts(Moment.STEP, Moment.CLIP) if loop is None or loop in p]
    at = acts.index(clip) if clip in acts else 0
    return next((a for a in [*acts[at:], *acts[:at]] if any(o is optimizer for o in a.optimizers)), None)


def _scaled(those: Sequence[Use]) -> bool:
    return any(u.passes and True in u.scales for u in those)


def _meets(scenarios: Uses) -> bool:
    """Whether a clip meets fresh gradients in some scenario."""
    return any(u.passes for s in scenarios for u in s)


def _always(scenarios: Uses, is_so: Callable[[Use], bool]) -> bool:
    """Whether it is so at every clip but the first, which may come before anything."""
    later = [u for s in scenarios for u in (s[1:] if len(s) > 1 else s)]
    return bool(later) and all(is_so(u) for u in later)


def _before_unscale(run: Section, clip: Act, step: Act, scenarios: Uses) -> Breach:
    use = next(u for s in scenarios for u in s if True in u.scales)
    backward = use.passes[-1].act
    partly = next((a for a, _ in run.acts(Moment.UNSCALE)), None) if any(
        u.passes and True not in u.scales for s in scenarios for u in s) else None
    why = f"no unscale_ stands between backward() at line {backward.at.line} and it"
    if partly is not None:
        why = f"the unscale_ at {partly.at} runs in some of the steps only, the clip in all of them"
    return Breach(
        "C106",
        f"{clip.name} at {clip.at} clips gradients that are still multiplied by the loss scale: {why}",
        clip.at, weakest(clip.known, step.known),
        {"kind": "now and then" if partly else "clip", "backward_line": backward.at.line, "step_line": step.at.line},
        remedy=None if partly else Remedy("unscale", clip, step))


def _chained(run: Section) -> Iterator[Breach]:
    for act, _ in run.acts(Moment.MADE):
        names = [n for o in act.optimizers for n in o.transforms]
        late = next((found for chain in chains() if (found := chain.late_bound(names))), None)
        if late is not None:
            yield Breach("C135", f"optax.chain at {act.at} clips after {late}: what is bounded is the update, not the "
                         "gradient", act.at, measured={"kind": "chain"}, severity=Severity.MEDIUM)
        grown = next((found for chain in chains() if (found := chain.late_decay(names))), None)
        if grown is not None:
            yield Breach("C524", f"optax.chain at {act.at} adds decayed weights behind {grown}, which has applied the "
                         "(negative) learning rate: the weights grow by that share in every step", act.at,
                         measured={"kind": "decay"})
