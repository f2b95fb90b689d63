"""A hook is registered once.

A registered hook stays until its handle removes it. Registered in each step, or in each epoch, on a model that is
older than the loop, step n runs n copies of it: the time of a step grows with the step number, and so does what the
hooks hold, while the loss is as it should be. What is registered under a condition, after an early return, on a model
that is made anew in the loop, or in a program that removes handles is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.lifetimes import step_loop
from traindx_tools.program.moments import Act, Section, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("graph", ("C310",))
_AGAIN = frozenset({"always", "every", "after"})


def check(program: Program) -> Iterator[Breach]:
    """Look at every registration."""
    removed = [a for r in program.runs for a, _ in r.acts(Moment.UNHOOKED)]
    if removed or any(a.moment is Moment.UNHOOKED for a in program.aside):
        return
    for run in program.runs:
        told: set[tuple[str, ...]] = set()
        for act, path in run.acts(Moment.HOOKED):
            loop = step_loop(path)
            if loop is None or act.kept is None or any(s.kind == "hook" for s in path):
                continue
            key = tuple(str(s.at) for s in path)
            if str(loop.at) not in act.kept.born and _in_each_turn(path, loop, act) and key not in told:
                told.add(key)
                yield _breach(act, path, loop)


def _in_each_turn(path: tuple[Section, ...], loop: Section, act: Act) -> bool:
    """Whether each turn of the loop comes there. A condition within a further loop is about the part at hand."""
    below: list[Section | Act] = [*path[path.index(loop) + 1:], act]
    section = loop
    for inner in below:
        before = section.items[:section.items.index(inner)] if inner in section.items else []
        if any(isinstance(i, Section) and i.kind == "arm" and i.leaves for i in before):
            return False
        if isinstance(inner, Act) or inner.kind == "loop":
            return True
        if inner.kind == "arm" and not all(a.kind in _AGAIN for a in inner.condition.atoms()):
            return False
        section = inner
    return True


def _breach(act: Act, path: tuple[Section, ...], loop: Section) -> Breach:
    call = next((s for s in reversed(path[path.index(loop) + 1:]) if s.kind == "call" and not loop.framework), None)
    at = call.at if call is not None else act.at
    inner = any(Moment.BACKWARD in s.has for s in loop.items if isinstance(s, Section) and loops((s,)))
    often = "epoch" if inner else "step"
    line = f", at line {act.at.line}," if call is not None else ""
    kind = "forward hooks" if "forward" in act.name.split("_") else "hooks"
    where = f"{loop.at.function}()" if loop.framework else f"the loop at {loop.at}"
    return Breach(
        "C310",
        f"{at.quote[:60]} at {at} registers{line} {kind} again in every {often} of {where}, and nothing removes them: "
        "hooks accumulate, so that each pass runs one more of them",
        at, act.known, {"kind": often, "registered_line": act.at.line})
