"""A number lies where its use makes sense.

A learning rate far above what its optimizer is trained with makes the first steps diverge, one below 1e-8 moves no
weight; Adam's betas are (0.9, 0.999) and not the other way round; a momentum of 1 never forgets. torch's BatchNorm
counts the weight of the new batch, Keras and flax that of the old statistics: after n updates a share of
(1 - momentum)^n of mean 0 and variance 1 is left. A bias of -3 in front of every ReLU leaves dead units, equal weights
stay equal. Dropout takes the share that is dropped; gradients clipped to 1e-8 are gone; cosines times a temperature of
0.07 (which divides) make a uniform softmax. LambdaLR multiplies the optimizer's rate with what its function gives: one
that gives the rate itself makes its square. `optax.apply_updates` adds: parts of a chain that multiply by a positive
number climb the loss. The ranges and their sources stand in the table of ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.knowledge.ranges import Range, by_call
from traindx_tools.program.constants import Constants
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("constants", ("C115", "C123", "C128", "C136", "C244", "C271", "C508"))


def check(program: Program) -> Iterator[Breach]:
    """Compare every number with the rows of its call."""
    for one in program.constants:
        seen: set[tuple[str, str]] = set()
        for row in by_call().get(one.of, ()):
            name = next((n for n in (row.argument, *row.also) if n in one.numbers), None)
            if name is not None and (row.id, row.argument) not in seen and _is_outside(row, one, name):
                seen.add((row.id, row.argument))
                yield _breach(row, one, name)


def _is_outside(row: Range, one: Constants, name: str) -> bool:
    value, here = one.numbers[name], one.circumstances
    if not row.needs <= here or row.spares & here or (row.over and not _other(row, one) > value):
        return False
    holds = {"above": value.__gt__, "at_least": value.__ge__, "below": value.__lt__, "at_most": value.__le__,
             "equal": value.__eq__}
    return all(holds[how](limit) for how, limit in row.outside)


def _other(row: Range, one: Constants) -> float:
    return next((one.numbers[n] for n in (row.over, "b1") if n in one.numbers), float("-inf"))


def _breach(row: Range, one: Constants, name: str) -> Breach:
    value = one.numbers[name]
    said = row.says.format(value=value, other=_other(row, one) if row.over else 0.0,
                           open=" (a default that may be overridden)" if name in one.open else "",
                           **{k: v for k, v in one.numbers.items() if k.isidentifier() and k != "value"})
    remedy = Remedy("usual number", Act(Moment.MADE, one.at, name, origin=one.origin), text=row.usual)
    return Breach(row.id, f"{one.text} at {one.at} has {said}", one.at,
                  Known.GUESSED if row.sign else Known.DERIVED, {"kind": row.kind, "value": value, **one.numbers},
                  Severity(row.severity), remedy if row.usual else None)
