"""What a function computes with is a copy of the state from before the training moved it.

A jitted function that finds the parameters or statistics in its surroundings holds them as constants from then on; one
that is handed an old variable computes with old values. Training goes on and the result of that function stays where it
was. The arrays are compared by their values and identity. `kind`: "unread" where the newer ones are an argument and
nothing is computed from them, "captured" where the function holds the old ones and is given none, "passed" where the
old ones are its argument, "training" where the step itself computes with what its state was at first.

A function that computes with the newer values as well (a penalty on the distance, a reference policy), that makes a
state (going back to the start), whose output goes into the training (a teacher, a target), that is called beside most
steps with their batch, or beside which another function evaluates the newer values (a baseline) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

UNREAD, CAPTURED, PASSED, TRAINING = "unread", "captured", "passed", "training"
MOVED, TIMES = 0.001, 2

RULE = Rule(
    id="J705",
    name="jax-stale-state",
    title="A function computes with the state from before the training",
    severity=Severity.HIGH,
    sees="the first state of each function that trains, and what other functions captured or are given after it moved",
    matters="what is evaluated is not what is trained: its result stays where it was at the beginning",
    alike=("a target network, a teacher or a reference policy: its output goes into the training",
           "a baseline: the trained state is evaluated as well", "frozen arrays, which the training does not move"),
    confirm=("pass the parameters as an argument and evaluate again: the result changes",
             "print(jax.make_jaxpr(function)(*arguments).consts): what is captured"),
    thresholds={"moved": Threshold(MOVED, "of the old values' norm", "less is a few steps of any optimizer"),
                "times": Threshold(TIMES, "steps after which it was called", "one may be a baseline: a sign")},
)


@dataclass(frozen=True)
class StaleUse:
    """One such function. `step`: calls of the training after which the state was so; `of`: arrays that moved."""

    kind: str
    function: str
    trained: str
    names: tuple[str, ...]
    of: int
    step: int
    moved: float
    calls: int
    times: int
    steps: int
    evaluated: bool
    """Another function evaluates the newer values."""
    place: tuple[str, int] | None = None
    quote: str = ""


_TELLS = {
    UNREAD: "{function} computes with {names} as {then}, held as constants; the newer ones are an argument of it and "
            "are not read",
    CAPTURED: "{function} computes with {names} as {then}, held as constants, and is given no newer ones",
    PASSED: "{function} is given {names} as {then}",
    TRAINING: "{function} computes with {names} as {then}, held as constants, and does not read those of its state",
}


def check(use: StaleUse) -> Iterator[Finding]:
    """The finding for a function."""
    file, line = use.place or (None, None)
    where = Location(file=file, line=line, quote=use.quote or None) if file is not None else Location(
        module=use.function)
    listed = ", ".join(use.names[:3]) + (f" and {len(use.names) - 3} more" if len(use.names) > 3 else "")
    then = f"they were {f'after {use.step} calls' if use.step else 'at the first call'} of {use.trained}"
    called = "" if use.kind == TRAINING else (
        f"; it was called {use.calls} times, after {use.times} different steps of {use.steps}")
    far = f"{use.moved:.2g} of their norm" if use.moved != float("inf") else "away from zero"
    yield RULE.finding(
        f"{_TELLS[use.kind].format(function=use.function, names=listed, then=then)}{called}; training has moved them "
        f"by {far} since", where, "the running process", bearing=_bearing(use), severity=_severity(use),
        measured={"kind": use.kind, "function": use.function, "trained": use.trained, "arrays": len(use.names),
                  "of": use.of, "moved": round(min(use.moved, 1e9), 5), "calls": use.calls, "times": use.times,
                  "evaluated": use.evaluated})


def _bearing(use: StaleUse) -> Bearing:
    if use.evaluated:
        return Bearing.COMPANION
    direct = use.kind in (UNREAD, TRAINING) or use.times >= TIMES
    return Bearing.CAUSE if direct else Bearing.SIGN


def _severity(use: StaleUse) -> Severity | None:
    if use.evaluated:
        return Severity.LOW
    return None if _bearing(use) is Bearing.CAUSE else Severity.MEDIUM
