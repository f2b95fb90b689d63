"""A compiled method keeps an attribute of its object as it was when it was compiled, and the attribute has changed.

With `static_argnums=0`, or a bound method given to `jax.jit`, the object is a constant of the compiled code, told apart
by its identity: what the method reads from `self` is fixed at the first call. A rate, a flag or parameters that another
method sets later are never seen. The attributes that the method reads are compared between the call that compiled and
later ones; an object whose hash changes with them is compiled anew and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J704",
    name="jax-frozen-by-static-self",
    title="An attribute of self is fixed in the compiled code",
    severity=Severity.HIGH,
    sees="attributes that a jitted method reads from a static self, when it is compiled and in later calls",
    matters="what is set later has no effect: a decayed rate, new parameters, a switch between training and evaluation",
    alike=("an attribute that is only printed or logged while the method is traced",),
    confirm=("print the attribute inside with jax.debug.print: it stays", "C514 in `traindx audit`"),
    thresholds={"calls": Threshold(3, "calls", "a change that is taken back at once is no state")},
)


@dataclass(frozen=True)
class Frozen:
    """An attribute that changed after the method was compiled. `was`, `now`: bounded texts."""

    function: str
    owner: str
    attribute: str
    was: str
    now: str
    calls: int
    file: str | None
    line: int | None


def check(frozen: Frozen) -> Iterator[Finding]:
    """The finding for an attribute."""
    where = (Location(file=frozen.file, line=frozen.line) if frozen.file is not None
             else Location(module=f"{frozen.owner}.{frozen.function}"))
    at = f" at {frozen.file}:{frozen.line}" if frozen.file is not None else ""
    yield RULE.finding(
        f"{frozen.function} was compiled with {frozen.owner}.{frozen.attribute} = {frozen.was}, which it reads{at}; "
        f"it is {frozen.now} by now, and the compiled code keeps the old one", where, "the running process",
        bearing=Bearing.CAUSE,
        measured={"kind": "static", "attribute": frozen.attribute, "was": frozen.was, "now": frozen.now,
                  "calls": frozen.calls, "function": frozen.function, "owner": frozen.owner})
