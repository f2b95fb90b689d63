"""Parameters that cannot receive a gradient: every way from them to the loss is cut, or there is none.

From the jaxpr alone, without running it: the ways from each parameter to the loss are followed, and a way ends where a
derivative is zero or undefined by construction (stop_gradient, rounding, sign, argmax, a comparison, a cast to
integers). In a running program the finding is made only where the parameters were also seen not to change although
an update is computed for them: a target network that is copied by an average, layers that are frozen on purpose and
passed through, or parameters that are given to stop_gradient as they are, are left alone. Where a call returns
gradients (an eager `grad`, a jitted function that gives them back) their norms are measured and stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Finding, Location, Severity, Strength, Value
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.paths.gradient import Blocked

RULE = Rule(
    id="J301",
    name="jax-no-gradient-path",
    title="Parameters that no gradient reaches",
    severity=Severity.HIGH,
    sees="all ways from a parameter to the loss in the jaxpr, and where each of them is cut",
    matters="these parameters keep their initial values while the loss goes down by the others alone",
    alike=("layers that are frozen on purpose", "a target network, which gets no gradient by design"),
    confirm=("`traindx run --probe inner-gradients -- CMD` records the norm of their gradient: it is exactly 0",),
)


def check(blocked: Blocked) -> Iterator[Finding]:
    """The finding for a group of parameters that one cut (or no way at all) leaves without a gradient."""
    cut = blocked.cut
    place = cut.place if cut is not None else None
    where = (Location(file=place.file, line=place.line, quote=place.quote) if place
             else Location(module=f"{blocked.function}: {blocked.names[0]}"))
    yield RULE.finding(
        _statement(blocked), where, "the traced function", strength=Strength.DIRECT,
        measured={"kind": blocked.kind, "parameters": blocked.names[:50], "count": len(blocked.names),
                  "cut": cut.op if cut is not None else None, "function": blocked.function,
                  "unchanged_calls": blocked.unchanged_calls, **measured_norms(blocked),
                  "code": place.quote if place else ""})


def measured_norms(blocked: Blocked) -> dict[str, Value]:
    """`norms`: pairs of a name and a norm, of the gradients that this is about; `largest_norm`: of all."""
    if blocked.norms is None:
        return {}
    told = tuple((n, blocked.norms[n]) for n in blocked.names[:50] if n in blocked.norms)
    return {"norms": told, "largest_norm": max(blocked.norms.values(), default=0.0)}


def _statement(blocked: Blocked) -> str:
    first = ", ".join(blocked.names[:3]) + (f" and {len(blocked.names) - 3} more" if len(blocked.names) > 3 else "")
    cut = blocked.cut
    if cut is not None:
        why = f"every way to the loss ends at {cut.op}" + (f" at {cut.place}" if cut.place else "")
    else:
        why = "the loss does not depend on them" if blocked.kind == "disconnected" else "every way to the loss is cut"
    seen = f"; they did not change in {blocked.unchanged_calls} calls" if blocked.unchanged_calls else ""
    if blocked.norms is not None:
        largest = max((blocked.norms.get(n, 0.0) for n in blocked.names), default=0.0)
        seen += (f"; the measured norm of their gradient is at most {largest:.3g}, the largest of all is "
                 f"{max(blocked.norms.values(), default=0.0):.3g}")
    return f"{blocked.function}: {first} cannot receive a gradient: {why}{seen}"
