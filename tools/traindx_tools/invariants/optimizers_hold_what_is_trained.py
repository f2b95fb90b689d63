"""An optimizer holds the parameters that are trained.

An optimizer keeps the parameter objects that existed, and were chosen, when it was built. Ways to miss: a part is
replaced, an embedding resized or adapters added afterwards; a checkpoint is assigned (`assign=True` puts new Parameter
objects in place of the old); the model was rebuilt or copied; what it left out because it was frozen is made trainable
later; an iterator over the parameters was at its end when the optimizer was given it; everything was frozen at that
moment, so that a filter by `requires_grad` chose nothing. Gradients and their norm look normal in all of them.
Another optimizer that is made after the change, or a further group, may hold what is new. `.to(device)` keeps the
parameter objects in torch 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.model_in_use import over_another_model
from traindx_tools.program.courses import Held, courses, held_at, made_before
from traindx_tools.program.entities import Optimizer
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C108", "C162", "C289"))
_KINDS = frozenset({"replaced", "grown", "assigned", "thawed"})


def check(program: Program) -> Iterator[Breach]:
    """Look at every change of what an optimizer holds, and at every optimizer over nothing that trains."""
    before = made_before(program)
    for run in program.runs:
        yield from _over_nothing(program, run)
        yield from over_another_model(run)
        if Moment.PARAMETERS not in run.has or not (before or Moment.MADE in run.has):
            continue
        told: dict[tuple[int, int], list[Held]] = {}
        for course in courses(program, run):
            for found in held_at(course, _KINDS, before):
                told.setdefault((id(found.change), id(found.optimizer)), []).append(found)
        # a method that makes several parts anew is one fault
        seen: set[tuple[str, str | None]] = set()
        for those in told.values():
            breach = _breaches(run, those)
            if breach is not None and (breach.id, those[0].change.at.function) not in seen:
                seen.add((breach.id, those[0].change.at.function))
                yield breach


def _breaches(run: Section, those: list[Held]) -> Breach | None:
    found = those[0]
    change = found.change.change
    if change is None or all(h.told for h in those) or any(h.told and h.steps for h in those):
        return None
    if change.kind == "assigned":
        return _assigned(found)
    if not any(h.steps for h in those):
        return None
    if change.kind == "thawed":
        return _thawed(run, found, change.of) if change.parts & found.optimizer.frozen else None
    if change.new and change.new <= found.optimizer.parts:
        return None  # its parts in another place
    return _too_early(run, found)


def _too_early(run: Section, found: Held) -> Breach:
    act, made, change = found.change, found.made, found.change.change
    assert change is not None
    keeps = "it holds those of the old one, and " if change.takes_a_place else ""
    called = next((s.at for s in run.path_to(act) if s.kind == "call" and change.somewhere
                   and s.at.file == made.at.file and made.at.line < s.at.line), None)
    via = f" (called at line {called.line})" if called is not None else ""
    return Breach(
        "C108",
        f"{change.text} at {act.at}{via}, after the optimizer was built at line {made.at.line}: {keeps}the new "
        "parameters are in no optimizer and are never updated",
        called or act.at, found.optimizer.known, {"kind": "too early", "optimizer_line": made.at.line},
        remedy=Remedy("built later", made, act))


def _thawed(run: Section, found: Held, where: str) -> Breach:
    """Where one line freezes here and thaws there, the call of it tells."""
    act, made = found.change, found.made
    calls = [s.at for s in run.path_to(act) if s.kind == "call"]
    both = any(a.change is not None and a.change.kind == "frozen" and a.at == act.at
               for a, _ in run.acts(Moment.PARAMETERS))
    at = calls[-1] if both and calls else act.at
    return Breach(
        "C162",
        f"{at.quote} at {at} unfreezes the module made at {where} after the optimizer was built at line "
        f"{made.at.line} over the parameters that were trainable then: what is unfrozen is in none of its groups and "
        "is never updated",
        at, found.optimizer.known, {"kind": "unfrozen", "optimizer_line": made.at.line},
        remedy=Remedy("over all", made))


def _assigned(found: Held) -> Breach:
    act, made = found.change, found.made
    return Breach(
        "C289",
        f"{act.owner}.load_state_dict(assign=True) at {act.at} replaces the parameters of {act.owner} after the "
        f"optimizer was built over them at line {made.at.line}: it holds the old parameters, which get no gradient",
        act.at, found.optimizer.known, {"kind": "assigned", "optimizer_line": made.at.line, "model": act.owner},
        remedy=Remedy("copy", act))


def _over_nothing(program: Program, run: Section) -> Iterator[Breach]:
    for act, _ in run.acts(Moment.MADE):
        for optimizer in act.optimizers:
            if optimizer.used_up:
                yield Breach("C108", f"The optimizer at {act.at} is given an iterator over parameters that was gone "
                             f"through at {optimizer.used_up} before: what it gives there is empty", act.at,
                             optimizer.known, {"kind": "used up"})
            if optimizer.nothing_trains and (optimizer.by_gradient or not _thawed_later(program, run, act)):
                yield _nothing(act, optimizer)


def _thawed_later(program: Program, run: Section, made: Act) -> bool:
    """Whether anything is made trainable behind it: an optimizer over all parameters holds more by then."""
    for course in courses(program, run):
        at = next((i for i, a in enumerate(course) if a is made), len(course))
        if any(a.change is not None and a.change.kind == "thawed" for a in course[at:]):
            return True
    return False


def _nothing(made: Act, optimizer: Optimizer) -> Breach:
    filtered = ", and the filter by requires_grad leaves an empty list" if optimizer.by_gradient else ""
    return Breach(
        "C108",
        f"The optimizer at {made.at} is built over nothing that trains: {optimizer.nothing_trains}{filtered}",
        made.at, optimizer.known,
        {"kind": "frozen", "filtered": optimizer.by_gradient, "reason": optimizer.nothing_trains})
