"""Arrays of 64 bits are passed to a function that computes with 32: JAX halves them without a word.

Unless jax_enable_x64 is set, float64 becomes float32 and int64 becomes int32 where they enter. For images and tokens
that is what one wants; for time stamps, coordinates, large identifiers and differences of nearly equal numbers the
digits that matter are lost. It is reported where values were seen that 32 bits cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J503",
    name="jax-double-becomes-single",
    title="Values lose digits or wrap when they enter JAX",
    severity=Severity.MEDIUM,
    sees="numpy arrays of 64 bits among the arguments of a jitted function, in its first calls",
    matters="identifiers and times become equal or negative, silently",
    alike=("float64 inputs that carry no more than 24 bits, which lose nothing that matters",),
    confirm=("compare np.asarray(jnp.asarray(x)) with x",),
    thresholds={"int32": Threshold(2**31 - 1, "largest int32", "two's complement"),
                "float32": Threshold(2**24, "largest exact integer", "24 bits of mantissa")},
)


def check(function: str, argument: str, dtype: str, worst: float, place: tuple[str, int] | None) -> Iterator[Finding]:
    """The finding for an argument; `worst`: a value that 32 bits cannot hold."""
    file, line = place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=function)
    yield RULE.finding(
        f"{function}: {argument} is {dtype} and holds {worst:.17g}, which {dtype.replace('64', '32')} cannot hold: JAX "
        "computes with 32 bits unless jax_enable_x64 is set", where, "the running process", bearing=Bearing.CAUSE,
        measured={"argument": argument, "dtype": dtype, "value": worst, "function": function})
