"""What holds in every scenario of a run, asked by several invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from traindx_tools.program.entities import Optimizer
from traindx_tools.program.gradients import Played, Use, played
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.program import Program

Uses = Sequence[Sequence[Use]]
"""The uses of one act by one optimizer, a sequence for each scenario in which there are any."""


def by_hand(program: Program) -> Iterator[Section]:
    """The runs in which the program itself updates the weights."""
    yield from (r for r in program.runs if r.framework in ("", "lightning manual"))


def uses(program: Program, run: Section, of: Callable[[Played], list[Use]]) -> Iterator[tuple[Act, Optimizer, Uses]]:
    """What each step or clip met, scenario by scenario; optimizers that unknown code was given are left out."""
    scenarios = [p for p in played(program, run) if not p.overflows]
    given = {i for p in scenarios for i in p.handed}
    found: dict[tuple[int, int], tuple[Act, Optimizer, list[list[Use]]]] = {}
    for scenario in scenarios:
        here: dict[tuple[int, int], list[Use]] = {}
        for use in of(scenario):
            here.setdefault((id(use.act), id(use.optimizer)), []).append(use)
        for key, those in here.items():
            found.setdefault(key, (those[0].act, those[0].optimizer, []))[2].append(those)
    yield from (one for one in found.values() if id(one[1]) not in given)


def weakest(*known: Known) -> Known:
    """A conclusion is known as well as its weakest premise."""
    order = (Known.GUESSED, Known.DERIVED, Known.RAN)
    return min(known, key=order.index)
