"""An optimizer is given each parameter once.

`[{"params": model.parameters()}, {"params": model.head.parameters(), "lr": 1e-3}]` names the head's parameters in both
groups, which torch refuses; in one list they are updated twice in every step (torch only warns). The first group has
to leave out what the second one names. Where some parameters were chosen one by one, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.entities import Given
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("ownership", ("C164",))


def check(program: Program) -> Iterator[Breach]:
    """Look at what each optimizer is built over."""
    made = {id(a): a for run in program.runs for a, _ in run.acts(Moment.MADE)}
    for act in made.values():
        for optimizer in act.optimizers:
            pair = None if any(g.chosen for g in optimizer.given) else _overlapping(optimizer.given)
            if pair is not None:
                twice = "" if optimizer.grouped else "; they are updated twice in every step"
                yield Breach(
                    "C164",
                    f"{optimizer.kind} at {act.at} is given the parameters of the module made at {pair[1].made} twice: "
                    f"by themselves and as a part of the module made at {pair[0].made}{twice}",
                    act.at, optimizer.known, {"kind": "groups" if optimizer.grouped else "list"})


def _overlapping(given: Sequence[Given]) -> tuple[Given, Given] | None:
    for i, outer in enumerate(given):
        for j, other in enumerate(given):
            same = other.module == outer.module
            if i != j and other.module in outer.inside and (not same or i < j):
                return outer, other
    return None
