"""Parameters that receive a gradient in some branches of a `cond` or `switch` only.

A parameter that is used in one branch gets a gradient of exactly zero in every step in which another branch is taken:
with a condition that is rarely true it hardly learns, and an optimizer with momentum or weight decay moves it all
the same. That is how a mixture of experts is meant to work, so it is a remark. It names the line of the cond, and
where the ways within its other branches end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.paths.ends import FORK, listed
from traindx_tools.on_jax.rules.j301_no_gradient_path import ends_of, measured_norms
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.paths.blocked import Blocked

RULE = Rule(
    id="J302",
    name="jax-gradient-in-one-branch",
    title="Parameters that only one branch trains",
    severity=Severity.INFO,
    sees="the ways from each parameter to the loss through the branches of cond and switch",
    matters="in steps that take another branch their gradient is exactly zero",
    alike=("experts of a mixture, which are meant to be chosen",),
    confirm=("count how often each branch is taken",),
)


def check(blocked: Blocked, zero: tuple[int, int] | None = None) -> Iterator[Finding]:
    """The remark for a group of parameters. `zero`: in how many calls of how many their gradients were exactly 0."""
    first = ", ".join(blocked.names[:3]) + (f" and {len(blocked.names) - 3} more" if len(blocked.names) > 3 else "")
    seen = f"; it was exactly 0 in {zero[0]} of {zero[1]} calls that were measured" if zero is not None else ""
    forks = tuple(c for c in blocked.cuts if c.role == FORK)
    rest = tuple(c for c in blocked.cuts if c.role != FORK)
    place = forks[0].place if forks else None
    branches = f"the cond at {place}" if place is not None else "a cond"
    others = f"; other ways end at {listed(rest)}" if rest else ""
    yield RULE.finding(
        f"{blocked.function}: {first} receive a gradient in some branches of {branches} only{others}{seen}",
        Location(file=place.file, line=place.line, quote=place.quote) if place
        else Location(module=f"{blocked.function}: {blocked.names[0]}"), "the traced function",
        bearing=Bearing.COMPANION,
        measured={"parameters": blocked.names[:50], "count": len(blocked.names), "function": blocked.function,
                  "ends": ends_of(blocked),
                  "zero_calls": zero[0] if zero is not None else None, **measured_norms(blocked)})
