"""An integer equation whose exact result does not fit its dtype.

Integers of JAX are 32 bits wide by default, also where numpy computes with 64: a product of sizes, a running count of
tokens or a flat index above 2,147,483,647 goes on at the negative end without an error. Every signed integer equation
of a call that is evaluated (`find_overflows`, or the call of a run in which a NaN came up) is computed again in float64
and compared with the limits of its dtype; unsigned integers wrap on purpose (hashes, random numbers) and are left out.
A run in which no value becomes NaN or infinite is not evaluated: ask `find_overflows` about the function then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_jax.nonfinite.wrapping import Wrapped

RULE = Rule(
    id="J502",
    name="jax-integer-overflow",
    title="An integer wraps around",
    severity=Severity.HIGH,
    sees="sums, products, powers and cumulative sums of signed integers in a traced call",
    matters="the value is silently wrong, usually negative; what divides by it or indexes with it goes wrong",
    alike=("a hash or a linear congruential generator in signed integers wraps on purpose",),
    confirm=("compute the value in Python integers", "JAX_ENABLE_X64=1 and compare"),
    thresholds={"int32": Threshold(2**31 - 1, "largest int32", "two's complement")},
)


def check(wrapped: Wrapped, function: str) -> Iterator[Finding]:
    """The finding for an overflow."""
    place = wrapped.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    at = f" at {place}" if place else ""
    within = f" ({', '.join(wrapped.path)})" if wrapped.path else ""
    yield RULE.finding(
        f"{function}: {wrapped.op} of {wrapped.dtype}{within}{at} should give {wrapped.exact:.6g}, which it "
        "cannot hold: it wraps around", where, "the traced call", bearing=Bearing.CAUSE,
        measured={"op": wrapped.op, "dtype": wrapped.dtype, "exact": wrapped.exact, "function": function,
                  "code": place.quote if place else ""})
