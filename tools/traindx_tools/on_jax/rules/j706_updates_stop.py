"""Parameters that moved stop at some call, and the calls go on.

In some calls a part of each array that a step carries on, or is given to differentiate, is compared with what it was
at the look before. From some call on nothing changes, or a ten-thousandth of what was usual, up to the end. What
multiplies the updates is then asked of the compiled program: a number that is made of the counters of its state alone
and fell to 0 is the learning rate of a schedule that has ended (optax counts optimizer steps). `kind`: "rate" for
that; "gradient" where gradients arrive all the same (they are returned, or the optimizer's moments go on changing by
them) and no such number was found: a mask, a transformation set to zero, a rate from outside; "unknown" where only the
loss moves. `onset`: "later". A stop in the last tenth of the calls is the end of a usual schedule, and nothing is
said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.measures.standstill import FEWEST, SHARE, SMALL, Standstill
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J706",
    name="jax-updates-stop",
    title="The parameters stop moving while the training goes on",
    severity=Severity.HIGH,
    sees="samples of the arrays that a step carries on, and the numbers in its jaxpr that counters alone decide",
    matters="every later step changes nothing: its time is lost",
    alike=("the end of a schedule: the rate reaches zero with the last steps",
           "a phase that freezes everything on purpose",
           "a problem without noise that is solved to the last bit"),
    confirm=("print(schedule(0), schedule(steps // 2), schedule(steps - 1)) with steps = epochs * steps_per_epoch.",
             "print(optax.global_norm(updates), optax.global_norm(grads)) in a late step."),
    thresholds={"calls": Threshold(FEWEST, "calls without movement", "fewer are the end of a schedule"),
                "share": Threshold(SHARE, "of all calls", "the last tenth may be the end of a schedule"),
                "small": Threshold(SMALL, "of the usual update", "what a cosine leaves in its last half per cent")},
)


@dataclass(frozen=True)
class Ended:
    """The number that multiplies the updates. `counter`: what it is made of; `at`: its value where `now` begins."""

    counter: str
    at: int | None
    before: float
    now: float
    place: tuple[str, int] | None


@dataclass(frozen=True)
class Stopped:
    """What is told of one function. `rounds`: its calls between calls of others, where they are regular."""

    function: str
    arrays: int
    still: Standstill
    kind: str
    gradient: str
    place: tuple[str, int] | None
    ended: Ended | None = None
    rounds: int | None = None


def check(told: Stopped) -> Iterator[Finding]:
    """The finding."""
    still, ended = told.still, told.ended
    file, line = (ended.place if ended is not None else None) or told.place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=told.function)
    size = "are exactly 0" if still.left == 0 else f"are {still.left / still.usual:.1e} of their usual size"
    yield RULE.finding(
        f"{told.function}: the updates of all {told.arrays} arrays looked at {size} from call {still.since} on, up to "
        f"call {still.last}{_because(told)}", where, "the running process",
        bearing=Bearing.CAUSE if ended is not None else Bearing.SIGN,
        severity=Severity.HIGH if told.kind != "unknown" else Severity.MEDIUM,
        measured={"kind": told.kind, "onset": "later", "step": still.since, "end_step": still.last,
                  "moved_until": still.moved, "arrays": told.arrays, "left": still.left / still.usual,
                  "counter": ended.counter if ended is not None else None,
                  "schedule_end": ended.at if ended is not None else None,
                  "before": ended.before if ended is not None else None,
                  "steps_per_round": told.rounds, "function": told.function})


def _because(told: Stopped) -> str:
    ended, still = told.ended, told.still
    if ended is None:
        return f"; {told.gradient}"
    since = f" from {ended.at} on" if ended.at is not None else " by then"
    text = (f"; what multiplies them is made of {ended.counter} alone and is {abs(ended.now):.3g}{since} "
            f"({ended.before:.3g} at first)")
    if told.rounds and ended.at is not None:
        epoch, epochs = max(1, -(-(still.since - 1) // told.rounds)), max(1, round(still.last / told.rounds))
        text += (f"; other functions are called after every {told.rounds} calls: the schedule's {ended.at} steps end "
                 f"in round (epoch) {epoch} of {epochs}")
    return text
