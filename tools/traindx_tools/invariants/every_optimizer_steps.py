"""Each optimizer that a program prepares for is stepped.

Where the gradients of an optimizer are cleared in the loop that trains, something steps it: its own `step`, a scaler's,
or unknown code that it was given to; and where it steps, some loss is sent backward. Where a module switched a
framework's automatic optimization off, the framework calls neither backward nor the optimizer: training_step has to,
and one that only returns its loss trains nothing, without an error: all epochs run and the loss scatters around its
first value.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import by_hand
from traindx_tools.knowledge import ranges
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Section, loops, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C133", "C287"))
_OTHER_WAYS = frozenset({Moment.BACKWARD, Moment.WRITTEN, Moment.GRADIENT})
"""By which gradients may come."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every optimizer that is cleared, and at every module that updates by hand."""
    for run in by_hand(program):
        if run.framework:
            yield from _left_out(run)
        yield from _never_stepped(program, run)
        yield from _never_sent(program, run)


def _never_sent(program: Program, run: Section) -> Iterator[Breach]:
    """A step over what a graph is built for in its loop, and no loss that is sent backward anywhere."""
    has = frozenset(m for r in program.runs for m in r.has)
    if _OTHER_WAYS & has or Moment.HANDED in run.has or program.losses_handed or any(r.framework for r in program.runs):
        return
    for step, path in run.acts(Moment.STEP):
        called = [m for a, _ in (loops(path)[-1].acts(Moment.FORWARD) if loops(path) else ()) if a.gradients
                  for m in a.models or ()]
        held = [h for o in step.optimizers for h in o.holds or ()]
        if step.known is Known.DERIVED and any(m.inside & h.inside for m in called for h in held):
            yield Breach(
                "C133", f"{step.owner or step.name}.step() at {step.at} is taken in a loop that computes an output of "
                "what it steps, and nothing in the program sends a loss backward: it never sees a gradient", step.at,
                step.known, {"kind": "no backward"})
            return


def _never_stepped(program: Program, run: Section) -> Iterator[Breach]:
    """An optimizer whose gradients are cleared, that nothing steps and nothing unknown was given."""
    stepped = _stepped(program)
    unknown = any(a.moment is Moment.HANDED and (a.known is Known.GUESSED or not a.optimizers)
                  for r in program.runs for a, _ in r.acts(Moment.HANDED) if r is run or a.known is Known.GUESSED)
    seen: set[int] = set()
    backwards = list(run.acts(Moment.BACKWARD))
    for clear, path in run.acts(Moment.CLEAR):
        loop = training_loop(path)
        for optimizer in clear.optimizers:
            if id(optimizer) in stepped | seen or unknown or optimizer.made is None or loop is None:
                continue
            seen.add(id(optimizer))
            backward = next((a for a, p in backwards if loop in p), None)
            if backward is not None:
                yield Breach(
                    "C133",
                    f"{clear.owner or optimizer.kind} is cleared at {clear.at} in the training loop at line "
                    f"{loop.at.line} and step() is never called on it: the gradients are thrown away",
                    clear.at, Known.DERIVED, {"kind": "step", "loop_line": loop.at.line},
                    remedy=Remedy("step", backward, None, clear.owner))


def _stepped(program: Program) -> set[int]:
    """The identities of optimizers that step anywhere, or were handed to unknown code."""
    known: set[int] | None = program.memo.get("stepped")
    if known is None:
        acts = [a for r in program.runs for a, _ in r.acts(Moment.STEP, Moment.HANDED)]
        known = program.memo["stepped"] = {id(o) for a in acts for o in a.optimizers}
    return known


def _left_out(run: Section) -> Iterator[Breach]:
    """A module that switched automatic optimization off and does not update by hand."""
    wanted = ranges.by_hand(run.framework)
    missing = [text for moment, text in wanted.items() if moment not in run.has]
    if missing and run.because is not None and Moment.HANDED not in run.has and Moment.CLEAR not in run.has:
        where = f"{run.at.function or 'training_step'} at line {run.at.line}"
        yield Breach(
            "C287",
            f"automatic_optimization = False at {run.because} leaves the update to {where}, which never calls "
            f"{' nor '.join(missing)}: no optimizer step is made",
            run.because, Known.DERIVED, {"kind": "manual", "missing": ", ".join(missing)})


