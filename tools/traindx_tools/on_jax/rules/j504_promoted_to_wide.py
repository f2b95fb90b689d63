"""A large half-precision array meets a float32 one and becomes float32: its memory doubles, and what follows does too.

JAX promotes without a word: an array of bfloat16 times a float32 array, or a numpy or jnp scalar such as
`np.float32(2)`, is float32 (float32 with float64 likewise, where 64 bits are enabled). Python numbers are weakly typed
and promote nothing. It is told where the wide array reaches a matrix product, a convolution or a loop; a cast that is
written in the code, a result that is cast back before, the moments of an optimizer and the backward pass are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_jax.summary.promotions import Promoted

RULE = Rule(
    id="J504",
    name="jax-promoted-to-wide",
    title="A large array becomes wider by promotion",
    severity=Severity.LOW,
    sees="conversions in the jaxpr that nobody wrote, the operand that caused them, and what reads the result",
    matters="twice the memory and a slower matrix product from there on, although half precision was asked for",
    alike=("a residual stream or logits that are kept in float32 on purpose: write the cast, and it is not told",),
    confirm=("print the dtype before and after the line",),
    thresholds={"bytes": Threshold(2**24, "bytes", "16 MiB: below it the memory is of no matter")},
)


def check(found: Sequence[Promoted], function: str) -> Iterator[Finding]:
    """The finding for the promotions of one function: it stands at the first of them that is large."""
    added = sum(p.added for p in found)
    if added < float(RULE.thresholds["bytes"].value):
        return
    first = found[0]
    place = first.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=function)
    more = f", and {len(found) - 1} more arrays after it" if len(found) > 1 else ""
    yield RULE.finding(
        f"{function}: {told(first)}" + (f" at {place}" if place else "") + f"{more}: {added / 2**20:.0f} MiB more "
        "where matrix products or loops read them", where, "the traced function", bearing=Bearing.CAUSE,
        measured={"before": first.before, "after": first.after, "shape": first.shape, "other": first.other,
                  "added_mib": added / 2**20, "count": len(found), "function": function,
                  "lines": tuple(str(p.place) for p in found[:20] if p.place is not None),
                  "code": place.quote if place else ""})


def told(it: Promoted) -> str:
    """What became what, and because of what."""
    size = ",".join(map(str, it.shape))
    scalar = "; write a Python number" if it.other.endswith("[]") else ""
    return f"{it.before}[{size}] becomes {it.after} because it meets {it.other}{scalar}"
