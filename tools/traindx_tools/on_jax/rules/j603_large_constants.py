"""A compiled function holds large arrays that it captured instead of getting them as arguments.

An array that a jitted function finds in its surroundings (a data set, an embedding table, the parameters themselves)
becomes a constant of the program: it is copied into it, takes memory a second time, slows compilation down by constant
folding, and a later change of it is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.places import Place
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J603",
    name="jax-large-constants",
    title="A compiled function captured large arrays",
    severity=Severity.LOW,
    sees="the constants of each jaxpr that is compiled",
    matters="memory is taken twice, compilation slows down, and changes of the array are not seen",
    alike=("tables of a few megabytes, which are fine",),
    confirm=("pass the array as an argument and compare the time to compile",),
    thresholds={"bytes": Threshold(2**26, "bytes", "64 MiB: from here on compilation is seen to slow down")},
)

LARGE = 2**30
"""Bytes from which it is a problem of memory."""


def check(function: str, sizes: Sequence[tuple[str, int]], place: Place | None) -> Iterator[Finding]:
    """The finding for captured arrays: their types and bytes, the largest first."""
    total = sum(size for _, size in sizes)
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    named = ", ".join(name for name, _ in sizes[:3])
    yield RULE.finding(
        f"{function} captured {len(sizes)} arrays of {total / 2**20:.0f} MiB as constants ({named}): pass them as "
        "arguments", where, "the compiled function", bearing=Bearing.CAUSE,
        severity=Severity.MEDIUM if total >= LARGE else None,
        measured={"bytes": total, "count": len(sizes), "function": function, "largest": sizes[0][0]})
