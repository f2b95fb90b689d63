"""A method that stands as a statement is called.

`optimizer.zero_grad` without brackets names a method and does nothing: no error, no warning. What it would have done is
missing from every iteration: gradients pile up, weights stay, a mode is never set.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach
from traindx_tools.invariants.pages import pages
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C365",))
_LACKING = {
    Moment.BACKWARD: "no gradient is computed",
    Moment.CLEAR: "the gradients are not cleared and pile up from step to step",
    Moment.STEP: "no step is made",
    Moment.MODE: "the mode stays as it was",
    Moment.SCHEDULE: "the schedule stays where it is",
    Moment.UNSCALE: "the gradients stay multiplied by the loss scale",
}


def check(program: Program) -> Iterator[Breach]:
    """Look at every method that is named alone."""
    for one in program.uncalled:
        lacking = f": {_LACKING[one.moment]}" if one.moment in _LACKING else ""
        yield Breach("C365", f"{one.text} at {one.at} names a method and does not call it{lacking}", one.at,
                     measured={"kind": one.moment.value if one.moment is not None else "method"},
                     severity=None if lacking else Severity.MEDIUM)
