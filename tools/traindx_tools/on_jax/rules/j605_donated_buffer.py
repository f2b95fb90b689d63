"""A buffer that was donated to a call is used again.

`donate_argnums` gives the memory of an argument to the outputs: the array is deleted by the call. Using the old
parameters or the old state afterwards (for an average, a comparison, a second call with the same state) raises this
error, or on a CPU of an older release nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.errors import raised_at
from traindx_tools.rules import Rule

RULE = Rule(
    id="J605",
    name="jax-donated-buffer",
    title="A donated buffer is used again",
    severity=Severity.HIGH,
    sees="the error of a deleted array, and the line that used it",
    matters="the state is lost: the program cannot go on from it",
    alike=("an array that was deleted by .delete()",),
    confirm=("rebind the name to the output of the call, or copy it before",),
)


def check(error: BaseException) -> Iterator[Finding]:
    """The finding where the error is this one."""
    text = str(error)
    if "has been deleted" not in text and "donated" not in text.lower():
        return
    place = raised_at(error)
    where = Location(file=place[0], line=place[1]) if place else Location(module="a donated argument")
    yield RULE.finding(
        f"an array was used after it had been donated to a call: {' '.join(text.split())[:200]}", where,
        "the error that ended the program", bearing=Bearing.SIGN, measured={"error": text[:200]})
