"""Where gradients overflow the loss scale comes down.

`scaler.update()` lowers the scale after an overflow. A guard of one's own that skips the update where gradients are not
finite keeps the scale where it overflows, and every later step overflows too.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import by_hand
from traindx_tools.program.gradients import Played, played
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C278",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every run with a scaler."""
    for run in by_hand(program):
        yield from _skipped_update(program, run)


def _skipped_update(program: Program, run: Section) -> Iterator[Breach]:
    """Fewer updates of the scale where gradients overflow than where they do not."""
    told = played(program, run)
    pairs = [(a, b) for a, b in zip(told[::2], told[1::2], strict=False) if not a.overflows and b.overflows]
    if not pairs or not all(_updates(b) < _updates(a) for a, b in pairs) or any(b.handed for _, b in pairs):
        return
    arms = {id(s): s for _, path in run.acts(Moment.UPDATE) for s in path if s.condition.has("finite")}
    guard = next(iter(arms.values()), None) or _leaving(run)
    step = next((a for a, _ in run.acts(Moment.STEP) if a.scaler is not None), None)
    if guard is None or step is None:
        return
    how = "leaves" if guard.leaves else "goes on"
    update = next(a for a, _ in run.acts(Moment.UPDATE))
    yield Breach(
        "C278",
        f"`{guard.condition.text[:60]}` at {guard.at} {how} before {update.owner}.update() at line {update.at.line} "
        "where the gradients are not finite: the loss scale is never lowered, so that every later step overflows too",
        guard.at, Known.DERIVED, {"kind": "left" if guard.leaves else "condition", "update_line": update.at.line,
                                  "step_line": step.at.line},
        remedy=Remedy("before the guard", step, update) if guard.leaves else None)


def _updates(told: Played) -> int:
    return sum(a.scaler is None or a.scaler.enabled is not False for a in told.updates)


def _leaving(run: Section) -> Section | None:
    """The arm that is left where gradients are not finite."""
    stack = [run]
    while stack:
        section = stack.pop(0)
        if section.kind == "arm" and section.leaves and section.condition.has("finite"):
            return section
        stack += [i for i in section.items if isinstance(i, Section)]
    return None
