"""A step computes new state and drops it: the optimizer's, or the running statistics of a normalisation.

From the jaxpr: the count of steps that an optimizer of optax reads is never counted up in any output, an array of its
state is returned as it came in although updates are computed from it, or the new running mean and variance of a
BatchNorm reach no output. Adam without its state is a sign descent with wrong bias correction; evaluation with
statistics that never move uses mean 0 and variance 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.paths.dead import Dropped

RULE = Rule(
    id="J702",
    name="jax-state-dropped",
    title="New optimizer state or batch statistics are computed and dropped",
    severity=Severity.HIGH,
    sees="equations of optax and of flax's normalisation layers whose results reach no output",
    matters="training or evaluation silently uses the initial state for ever",
    alike=("a gradient that is computed for inspection alone",),
    confirm=("return the new state and pass it to the next call",),
)


def check(dropped: Dropped) -> Iterator[Finding]:
    """The finding for state that is dropped."""
    place = dropped.place
    names = ", ".join(dropped.names[:3]) + (f" and {len(dropped.names) - 3} more" if len(dropped.names) > 3 else "")
    yield RULE.finding(
        f"{dropped.function}: the new {dropped.what} for {names} is computed at {place} and reaches no output",
        Location(file=place.file, line=place.line, quote=place.quote), "the compiled function",
        bearing=Bearing.CAUSE,
        measured={"what": dropped.what, "inputs": dropped.names[:20], "function": dropped.function,
                  "code": place.quote})
