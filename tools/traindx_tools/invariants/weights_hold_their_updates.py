"""A step is not smaller than what the weights can hold.

bfloat16 keeps 8 significant bits: around a weight of 0.5 its numbers are 0.002 to 0.004 apart. An Adam step is about as
large as the learning rate, so with 1e-4 nearly every update rounds away and most weights never change, although
gradients and their norm look normal. It needs float32 master weights (autocast over a float32 model) or stochastic
rounding. In float16, Adam's eps of 1e-8 is also exactly 0, which makes NaN of entries with zero gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("poles", ("C124",))
SPACING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Half the spacing of numbers just below 1 (8 and 11 significant bits)."""
TINY = 3e-8
"""What float16 rounds to 0: half its smallest number, 6e-8."""
MOST, MOST_OF_SGD = 1e-3, 1e-4
"""Learning rates up to which updates round away: an Adam step is about the rate; half a spacing at 0.25 is 1e-3."""

_ADAMS = ("Adam", "AdamW", "NAdam", "Adamax", "RAdam")


def check(program: Program) -> Iterator[Breach]:
    """Look at every optimizer over half-precision weights."""
    for one in program.half_updates:
        if one.dtype == "float16" and one.optimizer in _ADAMS and one.eps is not None and one.eps < TINY:
            yield Breach(
                "C124", f"{one.optimizer} at {one.at} updates float16 weights (cast at {one.cast}) with eps "
                f"{one.eps:g}, which is 0 in float16: entries with zero gradient become 0 / 0", one.at, Known.DERIVED,
                {"kind": "eps", "eps": one.eps, "dtype": one.dtype}, Severity.HIGH)
        elif one.rate is not None and one.rate <= (MOST_OF_SGD if one.optimizer == "SGD" else MOST):
            yield Breach(
                "C124", f"The {one.dtype} weights (cast at {one.cast}) are updated directly by {one.optimizer} at "
                f"{one.at} with a learning rate of {one.rate:g}: steps below half the spacing of {one.dtype} "
                f"({SPACING[one.dtype]:.1g} of a weight's size) round away", one.cast, Known.DERIVED,
                {"kind": "rounding", "dtype": one.dtype, "learning_rate": one.rate})
