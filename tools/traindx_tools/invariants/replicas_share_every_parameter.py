"""Replicas share every parameter that is trained.

DistributedDataParallel registers its hooks on the parameters that exist when it is built, and that require a gradient
then. A head that is replaced, a layer that is added, or a backbone that is unfrozen afterwards is not synchronised:
every rank trains its own copy of it. Wrapping again after the change, or wrapping before anything is frozen, helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.courses import courses
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C202",))


def check(program: Program) -> Iterator[Breach]:
    """Look at what happens after every wrapping."""
    for run in program.runs:
        if Moment.PARAMETERS not in run.has:
            continue
        told: dict[int, tuple[Act, Act]] = {}
        for course in courses(program, run):
            for act, wrapped in _untied(course):
                told.setdefault(id(act), (act, wrapped))
        first: set[str] = set()
        for act, wrapped in told.values():
            kind = act.change.kind if act.change is not None else ""
            if kind == "replaced":
                yield _added(act, wrapped)
            elif kind not in first:
                first.add(kind)
                yield _unfrozen(run, act, wrapped)


def _untied(course: Sequence[Act]) -> list[tuple[Act, Act]]:
    """The changes that no later wrapping ties, each with the wrapping before it."""
    frozen: frozenset[int] = frozenset()
    tied: dict[int, Act] = {}
    without_hooks: dict[int, Act] = {}
    found: list[tuple[Act, Act, frozenset[int]]] = []
    for act in course:
        change = act.change
        if change is None:
            continue
        if change.kind == "wrapped":
            found = [f for f in found if not f[2] & change.parts]
            tied.update(dict.fromkeys(change.parts, act))
            without_hooks = {i: a for i, a in without_hooks.items() if i not in change.parts}
            without_hooks.update(dict.fromkeys(change.parts & frozen, act))
        elif change.kind == "frozen":
            frozen |= change.parts
        elif change.kind == "thawed":
            late = [without_hooks[i] for i in change.parts & frozen if i in without_hooks]
            found += [(act, late[0], change.parts)] if late else []
            frozen -= change.parts
        elif change.kind == "replaced" and (owners := [tied[i] for i in change.parts if i in tied]):
            found.append((act, owners[0], change.parts))
    return [(act, wrapped) for act, wrapped, _ in found]


def _added(act: Act, wrapped: Act) -> Breach:
    change = act.change
    assert change is not None
    return Breach(
        "C202",
        f"{change.text} at {act.at}, after DistributedDataParallel was built at line {wrapped.at.line}: its parameters "
        "have no hooks and are not synchronised",
        act.at, act.known, {"kind": "added", "wrapped_line": wrapped.at.line})


def _unfrozen(run: Section, act: Act, wrapped: Act) -> Breach:
    """Told of the call of the helper that unfreezes, where there is one that does nothing else."""
    helper = next((s for s in reversed(run.path_to(act)) if s.kind == "call"), None)
    if helper is not None and helper.has == {Moment.PARAMETERS}:
        act = Act(act.moment, helper.at, change=act.change, origin=helper.origin)
    return Breach(
        "C202",
        f"{act.at.quote} at {act.at} unfreezes parameters after DistributedDataParallel was built at {wrapped.at}, "
        "when they required no gradient: they have no hooks, their gradients are not synchronised, and each rank "
        "trains its own copy",
        act.at, act.known, {"kind": "unfrozen", "wrapped_line": wrapped.at.line},
        remedy=Remedy("wrapped again", act, wrapped))
