"""The carry of a loop leaves the body with another type than it entered, told leaf by leaf.

A loop is compiled once, so that shape, dtype and structure of what it carries must stay. The error that ends the
program is read: for each leaf what entered and what came out, with the usual reasons: a Python number as start value is
an int32 or weakly typed, a sum in bfloat16 became float32, a reduction kept or lost an axis.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.errors import mismatches, raised_at
from traindx_tools.rules import Rule

RULE = Rule(
    id="J501",
    name="jax-carry-mismatch",
    title="The carry of a loop changes its type",
    severity=Severity.HIGH,
    sees="the error of scan, while_loop or fori_loop, and the line that called it",
    matters="the program cannot be traced",
    alike=("a leaf whose type differs on purpose belongs to the ys of the scan",),
    confirm=("jax.eval_shape of the body with the initial carry",),
)


def check(error: BaseException) -> Iterator[Finding]:
    """The finding where the error is this one."""
    found = mismatches(error)
    if not found:
        return
    place = raised_at(error)
    where = (Location(file=place[0], line=place[1]) if place else Location(module="the carry of a loop"))
    told = "; ".join(f"{leaf}: enters as {before}, leaves as {after}{_why(before, after)}" for leaf, before, after in
                     found[:4])
    yield RULE.finding(f"the carry of a loop changes its type: {told}", where, "the error that ended the program",
                       bearing=Bearing.CAUSE,
                       measured={"leaf": found[0][0], "before": found[0][1], "after": found[0][2], "count": len(found)})


def _why(before: str, after: str) -> str:
    first, second = before.partition("[")[0], after.partition("[")[0]
    if first == second:
        return " (the shape differs)" if "weak" not in before + after else " (a weak type: write the dtype)"
    if first.startswith(("int", "bool", "uint")) and second.startswith(("float", "bfloat")):
        return f" (start it as {second}: jnp.zeros(..., jnp.{second}) or 0.0)"
    return f" (promoted by the body: end it with .astype(jnp.{first}))"
