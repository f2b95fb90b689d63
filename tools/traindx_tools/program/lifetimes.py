"""How long what is kept lives: the loops in each turn of which it stays, and what ends its life."""

from __future__ import annotations

from collections.abc import Hashable

from traindx_tools.program.moments import Kept, Section, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment


def step_loop(path: tuple[Section, ...]) -> Section | None:
    """The innermost loop around a moment that trains: it sends a loss backward, or a framework turns it."""
    return next((s for s in reversed(path) if s.kind == "loop" and (s.framework or Moment.BACKWARD in s.has)), None)


def training_loops(program: Program) -> frozenset[str]:
    """The loops that send a loss backward, as `file.py:12`."""
    found: frozenset[str] | None = program.memo.get("training loops")
    if found is None:
        around = [s for run in program.runs for _, path in run.acts(Moment.BACKWARD) for s in loops(path)]
        found = program.memo["training loops"] = frozenset(str(s.at) for s in around)
    return found


def turns_outlived(path: tuple[Section, ...], kept: Kept) -> tuple[Section, ...]:
    """The loops (and hooks) around a moment whose turns a container outlives."""
    if kept.crossing is None or kept.crossing < 0:
        around = [s for s in path if s.kind in ("loop", "hook")]
        return tuple(s for s in around if str(s.at) not in kept.born)
    own: list[Section] = []
    for section in reversed(path):
        if section.kind == "call":
            break
        own += [section] if section.kind == "loop" else []
    return tuple(own[:kept.crossing])


def ends_in(loop: Section, kept: Kept, sent: frozenset[Hashable]) -> bool:
    """Whether a container is emptied, begins anew, or is made into what is sent backward, in a loop."""
    return any(a.kept is not None and a.kept.containers & kept.containers and (not a.kept.own or a.kept.own & sent)
               for a, _ in loop.acts(Moment.EMPTIED))


def ends_elsewhere(program: Program, kept: Kept, every: bool = False, hooks: bool = False) -> bool:
    """Whether a container is emptied where no run is known to come; with `every`, also in any run. With `hooks`: or
    whether a hook is removed anywhere."""
    acts = [*program.aside, *(a for run in program.runs for a, _ in run.acts(Moment.EMPTIED, Moment.UNHOOKED) if every)]
    return any(hooks if a.moment is Moment.UNHOOKED else a.kept is not None and not a.kept.own and bool(
        a.kept.containers & kept.containers) for a in acts)


def removed(program: Program, kept: Kept) -> bool:
    """Whether what a hook keeps is emptied anywhere, or a hook is removed other than at the end of all training."""
    if program.aside or ends_elsewhere(program, kept, every=True):
        return ends_elsewhere(program, kept, every=True, hooks=True)
    for run in program.runs:
        moments = [a.moment for a, _ in run.acts(Moment.BACKWARD, Moment.UNHOOKED)]
        rest = moments[moments.index(Moment.UNHOOKED):] if Moment.UNHOOKED in moments else []
        if rest and (Moment.BACKWARD in rest or Moment.BACKWARD not in moments):
            return True
    return False
