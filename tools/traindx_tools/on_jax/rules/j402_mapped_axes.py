"""`vmap` was told axes that its arguments do not have, or that differ in size.

Every array that is mapped must have the mapped axis, and all of these axes the same size. The error names the
arguments with their shapes; the finding adds the line, and which in_axes would fit: None for what all examples share
(parameters, keys that were not split), the axis of the batch for the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.errors import raised_at
from traindx_tools.rules import Rule

RULE = Rule(
    id="J402",
    name="jax-mapped-axes",
    title="vmap maps axes that do not fit together",
    severity=Severity.HIGH,
    sees="the error of vmap and the shapes in it",
    matters="the program cannot be traced",
    alike=("a wrong axis of the right size raises nothing: J401 finds that",),
    confirm=("print jax.tree.map(jnp.shape, arguments) before the call",),
)


def check(error: BaseException) -> Iterator[Finding]:
    """The finding where the error is this one."""
    text = str(error)
    if not isinstance(error, ValueError) or not text.startswith("vmap "):
        return
    place = raised_at(error)
    where = Location(file=place[0], line=place[1]) if place else Location(module="vmap")
    first = " ".join(text.split())[:400]
    yield RULE.finding(f"{first}; in_axes=None is for what all examples share, an axis for what has one per example",
                       where, "the error that ended the program", bearing=Bearing.CAUSE,
                       measured={"kind": "sizes" if "inconsistent sizes" in text else "axes"})
