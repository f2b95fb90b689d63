"""`jax.jit` is called again and again at one line, each time on a new function, and each is compiled.

A lambda, a partial or a nested function that is made inside the loop is a new function to JAX: nothing that was
compiled before is used again. The same holds for `grad` and `vmap` of a fresh function under jit.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J602",
    name="jax-jit-in-loop",
    title="A new function is jitted and compiled in each step",
    severity=Severity.MEDIUM,
    sees="compilations of functions that were jitted at the same line",
    matters="every step compiles: seconds instead of milliseconds, and memory grows with each program",
    alike=("a factory that makes one step for each of a few configurations",),
    confirm=("move the jit out of the loop and time a step",
           "JAX_LOG_COMPILES=1"),
    thresholds={"count": Threshold(8, "functions", "more than one program makes of one line on purpose")},
)


def check(function: str, count: int, place: tuple[str, int] | None) -> Iterator[Finding]:
    """The finding for a line that made `count` functions which were compiled."""
    file, line = place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=function)
    at = f" at {file}:{line}" if file is not None else ""
    yield RULE.finding(
        f"{count} functions named {function} were jitted{at}, and each was compiled: the jit stands inside a loop",
        where, "the running process", bearing=Bearing.CAUSE,
        measured={"kind": "jit in a loop", "count": count, "function": function})
