"""The new state that a training step returns is never passed to the next call.

In JAX nothing changes in place: a step returns the new parameters, optimizer state and statistics, and the loop must
pass them on. Where an argument stays the same object in all calls while an output of exactly its structure, shapes and
dtypes comes back each time and is not used, every step starts from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J701",
    name="jax-state-not-fed-back",
    title="The new state that a step returns is dropped",
    severity=Severity.HIGH,
    sees="the identity of arguments from call to call, and outputs of the same structure",
    matters="training does not move, or the optimizer forgets its moments in every step",
    alike=("gradients that are summed over micro-batches while the parameters rest",
           "an evaluation that returns its input"),
    confirm=("print a leaf of the argument in two steps: it is the same",),
    thresholds={"calls": Threshold(10, "calls", "more micro-batches than are usually accumulated before an update")},
)


def check(function: str, argument: str, output: str, calls: int, leaves: int,
          place: tuple[str, int] | None) -> Iterator[Finding]:
    """The finding for an argument that never changes and an output that never comes back."""
    file, line = place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=function)
    yield RULE.finding(
        f"{function} was called {calls} times with the same {argument}, and output {output}, which has the same "
        f"structure ({leaves} arrays), was never passed back", where, "the running process",
        bearing=Bearing.SIGN,
        measured={"argument": argument, "output": output, "calls": calls, "leaves": leaves, "function": function})
