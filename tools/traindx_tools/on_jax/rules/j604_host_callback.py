"""A step that is called in a loop calls back into Python.

`pure_callback`, `io_callback` and `jax.debug.print` stop the device until Python has answered. One for each logging
interval is fine; one in every step, or in the body of a scan, makes the host the clock of the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.places import Place
from traindx_tools.rules import Rule

RULE = Rule(
    id="J604",
    name="jax-host-callback",
    title="A compiled step calls back into Python",
    severity=Severity.INFO,
    sees="callbacks among the equations of a function that is called in a loop, and the loops around them",
    matters="the device waits for Python in each step, in a loop body in each iteration",
    alike=("a callback under a cond that is taken once in an interval",),
    confirm=("take it out and time a step",),
)


def check(function: str, op: str, path: Sequence[str], place: Place | None) -> Iterator[Finding]:
    """The remark; in the body of a loop it is more than that."""
    inside = any(p.startswith(("scan", "while")) for p in path)
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    at = f" at {place}" if place else ""
    yield RULE.finding(
        f"{function} calls back into Python by {op}{at}" + (f" inside {', '.join(path)}" if path else ""), where,
        "the compiled function", bearing=Bearing.COMPANION,
        severity=Severity.LOW if inside and op != "debug_callback" else None,
        measured={"op": op, "path": tuple(path), "function": function})
