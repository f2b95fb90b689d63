"""What the loss is computed through is held by an optimizer.

The loss is computed through two modules, an encoder and a decoder say, and the optimizer was built over one of them.
The other gets gradients in every step and stays at its random initialisation. Told only where it is known what every
optimizer holds and how the losses were computed. What is frozen, put into eval mode (a perceptual loss), loaded from a
file or called a teacher is left alone, and so are what any optimizer holds a part of and a loop that writes gradients
itself: it may read them from a module that is a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.entities import Model, Optimizer
from traindx_tools.program.known import Known
from traindx_tools.program.lifetimes import step_loop
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C163",))
MOST_PLACES = 55
"""Places of a loss from which on the reader may have left some out (it keeps 60)."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every module that is called in a loop that trains."""
    made = [a for run in program.runs for a, _ in run.acts(Moment.MADE)] + program.before
    grown = any(a.change is not None and a.change.kind == "given" for r in program.runs
                for a, _ in r.acts(Moment.PARAMETERS))
    holders = {id(o): o for a in made for o in a.optimizers if not o.transforms}
    if grown or not holders or any(o.holds is None or any(m.made is None for m in o.holds) for o in holders.values()):
        return
    owned = frozenset(i for o in holders.values() for m in o.holds or () for i in m.inside) | frozenset(
        i for o in holders.values() for i in o.parts)
    settled = [m for r in program.runs for a, _ in r.acts(Moment.MODE) if a.training is False for m in a.models or ()]
    seen: set[int] = set()
    for run in program.runs:
        for loop in _loops(run, holders):
            found = list(_left_out(loop, owned, settled, seen))
            text = " ".join(a.text for a, _ in found)
            there = _together(loop, made, found)
            for act, model in found:
                yield _breach(act, model, Remedy("hold too", there, text=text) if there is not None else None)


def _loops(run: Section, holders: dict[int, Optimizer]) -> Iterator[Section]:
    """The loops that step an optimizer of which it is known what it holds, and nothing else that may be one."""
    seen: set[int] = set()
    for act, path in run.acts(Moment.STEP):
        loop = step_loop(path)
        if loop is None or {Moment.HANDED, Moment.WRITTEN} & loop.has or id(loop) in seen:
            continue
        if any(id(o) in holders for o in act.optimizers):
            seen.add(id(loop))
            yield loop


def _left_out(loop: Section, owned: frozenset[int], settled: Sequence[Model], seen: set[int]
              ) -> Iterator[tuple[Act, Model]]:
    passes = [a for a, _ in loop.acts(Moment.BACKWARD)]
    if not all(a.known is Known.DERIVED and 0 < len(a.traces) <= MOST_PLACES for a in passes):
        return
    sent = frozenset(t for a in passes for t in a.traces)
    known = all(a.reached for a in passes)
    reached = frozenset(i for a in passes for i in a.reached)
    for act, _ in loop.acts(Moment.FORWARD):
        model = act.models[0] if act.models else None
        if model is None or not act.gradients or id(model) in seen or not act.traces & sent:
            continue
        if model.set_aside or not model.learning or model.inside & owned or str(loop.at) in model.born_in:
            continue
        if known and not model.inside & reached:
            continue  # another object of its class: places are the same, the module is not
        if not any(m.inside & model.inside for m in settled):
            seen.add(id(model))
            yield act, model


def _together(loop: Section, made: Sequence[Act], found: Sequence[tuple[Act, Model]]) -> Act | None:
    """The one optimizer that could hold them all, where no module of the loop is held in part on purpose."""
    places = {str(a.at): a for a in made}
    called = [m for a, _ in loop.acts(Moment.FORWARD) for m in a.models or ()]
    held = frozenset(i for a in made for o in a.optimizers for m in o.holds or () for i in m.inside)
    in_part = any(m.learning & held and m.learning - held for m in called)
    if len(places) != 1 or in_part or not found:
        return None
    there = next(iter(places.values()))
    near = all(a.at.file == there.at.file and a.at.function == there.at.function for a, _ in found)
    before = all(m.place is not None and m.place < (there.at.file, there.at.line) and m.place[0] == there.at.file
                 for _, m in found)
    return there if near and before else None


def _breach(act: Act, model: Model, remedy: Remedy | None) -> Breach:
    return Breach(
        "C163",
        f"{act.text or 'The module'} ({model.name}, made at {model.made}) takes part in the loss (called at {act.at}), "
        "and no optimizer was built over its parameters: it stays at its initialisation",
        act.at, act.known, {"kind": f"left out: {act.text}", "made_at": model.made or "?"}, remedy=remedy)
