"""Parameters that cannot receive a gradient: every way from them to the loss is cut, or there is none.

From the jaxpr alone, without running it: the ways from each parameter to the loss are followed, and a way ends where a
derivative is zero or undefined by construction (stop_gradient, rounding, sign, argmax, a comparison, a cast to
integers). Every end on the ways is named with its line, the one to change first: a choice of codes that a
straight-through estimator leads past, the stop_gradient of that estimator and that of a target come last.

In a running program the finding is made only where the parameters were also seen not to change although an update is
computed for them, or where that update is made of nothing but themselves (weight decay): a target network that is
copied by an average, a codebook of averages, layers that are frozen on purpose and passed through, or parameters that
are given to stop_gradient as they are, are left alone. Where a call returns
gradients (an eager `grad`, a jitted function that gives them back) their norms are measured and stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.on_jax.paths.ends import listed
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.paths.blocked import Blocked

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
    cut = blocked.cuts[0] if blocked.cuts else None
    place = cut.place if cut is not None else None
    where = (Location(file=place.file, line=place.line, quote=place.quote) if place
             else Location(module=f"{blocked.function}: {blocked.names[0]}"))
    yield RULE.finding(
        _statement(blocked), where, "the traced function", bearing=Bearing.CAUSE,
        measured={"kind": blocked.kind, "parameters": blocked.names[:50], "count": len(blocked.names),
                  "cut": cut.op if cut is not None else None, "ends": ends_of(blocked), "function": blocked.function,
                  "unchanged_calls": blocked.unchanged_calls, "decaying": blocked.decaying[:50],
                  **measured_norms(blocked), "code": place.quote if place else ""})


def ends_of(blocked: Blocked) -> tuple[tuple[str, str, str], ...]:
    """Every end on the ways: primitive, line, and what it is for, the one to change first."""
    return tuple((c.op, str(c.place or ""), c.role) for c in blocked.cuts[:20])


def measured_norms(blocked: Blocked) -> dict[str, Value]:
    """`norms`: pairs of a name and a norm, of the gradients that this is about; `largest_norm`: of all."""
    if blocked.norms is None:
        return {}
    told = tuple((n, blocked.norms[n]) for n in blocked.names[:50] if n in blocked.norms)
    return {"norms": told, "largest_norm": max(blocked.norms.values(), default=0.0)}


def _statement(blocked: Blocked) -> str:
    first = ", ".join(blocked.names[:3]) + (f" and {len(blocked.names) - 3} more" if len(blocked.names) > 3 else "")
    return f"{blocked.function}: {first} cannot receive a gradient: {_why(blocked)}{_moved(blocked)}{_norm(blocked)}"


def _why(blocked: Blocked) -> str:
    if not blocked.cuts:
        return "the loss does not depend on them" if blocked.kind == "disconnected" else "every way to the loss is cut"
    return f"{'every way' if len(blocked.cuts) == 1 else 'the ways'} to the loss end" + (
        "s" if len(blocked.cuts) == 1 else "") + f" at {listed(blocked.cuts)}"


def _moved(blocked: Blocked) -> str:
    if not blocked.unchanged_calls:
        return ""
    calls, decaying = blocked.unchanged_calls, len(blocked.decaying)
    if not decaying:
        return f"; they did not change in {calls} calls"
    if decaying == len(blocked.names):
        return f"; in {calls} calls weight decay alone moved them"
    some = ", ".join(blocked.decaying[:3]) + (f" and {decaying - 3} more" if decaying > 3 else "")
    return f"; in {calls} calls weight decay alone moved {some}, nothing the others"


def _norm(blocked: Blocked) -> str:
    if blocked.norms is None:
        return ""
    largest = max((blocked.norms.get(n, 0.0) for n in blocked.names), default=0.0)
    return (f"; the measured norm of their gradient is at most {largest:.3g}, the largest of all is "
            f"{max(blocked.norms.values(), default=0.0):.3g}")
