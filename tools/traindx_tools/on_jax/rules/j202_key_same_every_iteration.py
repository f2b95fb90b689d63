"""A key that does not change from iteration to iteration is used in the body of a loop.

The body of a `scan`, `while_loop` or `fori_loop` uses a key that enters it from outside, or one that it carries on
unchanged. Every iteration then draws the same numbers: the noise of a simulation is one constant vector, each layer of
a scanned network drops the same units. A key that the loop goes over (`split(key, n)` as xs), one that the body
splits and carries on, and `fold_in(key, i)` with the iteration's number are all different in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.keys.uses import Reuse

RULE = Rule(
    id="J202",
    name="jax-key-same-every-iteration",
    title="Every iteration of a loop uses the same random key",
    severity=Severity.HIGH,
    sees="draws and splits in the bodies of scan and while loops, and what their keys depend on",
    matters="every iteration draws the same numbers",
    alike=("one mask for all time steps on purpose (variational dropout in a recurrent network)",),
    confirm=("return the drawn numbers as the scan's ys: all rows are equal",),
)


def check(reuse: Reuse, function: str) -> Iterator[Finding]:
    """The finding for a use in a loop."""
    use = reuse.second
    place = use.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    trips = use.loops[-1][1] if use.loops else None
    times = f"{trips} iterations" if trips is not None else "iterations"
    at = f" at {place}" if place else ""
    yield RULE.finding(
        f"{function}: the {use.use}{at} inside {', '.join(use.path) or 'a loop'} takes the same key in all {times}: "
        "it gives the same numbers each time", where, "the traced function", bearing=Bearing.CAUSE,
        measured={"kind": reuse.kind, "use": use.use, "iterations": trips, "function": function,
                  "code": place.quote if place else "", "path": use.path})
