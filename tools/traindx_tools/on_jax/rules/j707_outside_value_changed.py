"""A compiled function took a value from its surroundings when it was traced, and the value is another one by now.

`jax.jit` (also within `nnx.jit` and `eqx.filter_jit`) runs the Python code once: a variable around the function, a
global, an attribute of an object, an entry of a dict or a default argument is a constant of what is compiled. A rate
that decays, a temperature, a weight that warms up, a level of a curriculum that the loop sets anew never arrives. The
values that the code reads, in the functions that it calls too, are compared between the calls that compiled and later
ones of the same signature. A value that is an argument (also a static one, which compiles anew) is no such read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J707",
    name="jax-outside-value-changed",
    title="A value from outside is fixed in the compiled code",
    severity=Severity.HIGH,
    sees="values that a jitted function reads from its surroundings, when it is compiled and in later calls",
    matters="what the loop sets later has no effect: a decayed rate, a weight that warms up, a temperature",
    alike=("a value that is only printed, logged or counted while the function is traced",
           "a value behind a condition that does not hold, or is not known: nothing is said of it",
           "a name that is used again for a value of another kind"),
    confirm=("print the value inside with jax.debug.print: it stays", "C513 in `traindx audit`"),
    thresholds={"calls": Threshold(3, "calls", "a change that is taken back at once is no state")},
)


@dataclass(frozen=True)
class Outside:
    """A value that changed after the function was compiled. `was`, `now`: bounded texts; `via`: who reads it."""

    function: str
    value: str
    was: str
    now: str
    calls: int
    file: str
    line: int
    via: str


def check(one: Outside) -> Iterator[Finding]:
    """The finding for a value."""
    within = "" if one.via in (one.function, "<lambda>") else f", in {one.via}"
    yield RULE.finding(
        f"{one.function} was compiled with {one.value} = {one.was}, which it reads from outside at "
        f"{one.file}:{one.line}{within}; it is {one.now} by now, and the compiled code keeps the old one",
        Location(file=one.file, line=one.line), "the running process", bearing=Bearing.CAUSE,
        measured={"kind": "outside", "value": one.value, "was": one.was, "now": one.now, "calls": one.calls,
                  "function": one.function, "via": one.via})
