"""The state of a checkpoint went into an optimizer or schedule that is not the one that trains.

`load_state_dict` was called and nothing failed; then the object was made anew (by a trainer, a helper, a line below the
load) or emptied, and the training goes on with one that starts from nothing. `kind`: "optimizer replaced", "optimizer
emptied", "scheduler replaced" or "scheduler reset".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, At
from traindx_tools.rules import Rule, Threshold

STEPS = 3

RULE = Rule(
    id="T327",
    name="restored-and-replaced",
    title="A restored optimizer or schedule is replaced before it is used",
    severity=Severity.HIGH,
    sees="which optimizers and schedules took a state, which of them step afterwards, and with how much of that state",
    matters="moments are cold, the schedule starts again, although the checkpoint was loaded",
    alike=("an evaluation, or a state that is loaded at the end: nothing steps afterwards",
           "several optimizers over parameters of their own", "an optimizer without state: there is none to lose"),
    confirm=("print(id(optimizer), len(optimizer.state))  # right after loading, and in the first step",),
    thresholds={"steps": Threshold(STEPS, "steps of the other one", "fewer are a trial")},
)


@dataclass(frozen=True)
class Replaced:
    """One state. `how`: "replaced", "emptied" or "reset"; `steps`: of the one that is used."""

    what: str
    how: str
    name: str
    at: At
    steps: int
    held: int
    """Parameters with a state, or the position of the schedule, when it was loaded."""
    used: str = ""


def check(seen: Sequence[Replaced]) -> Iterator[Finding]:
    """One finding for each state."""
    for one in seen:
        if one.steps < STEPS:
            continue
        held = f"the state of {one.held} parameters" if one.what == "optimizer" else f"its position ({one.held})"
        yield RULE.finding(
            f"{one.name} took {held} from a checkpoint and {_how(one)}", one.at.where(), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": f"{one.what} {one.how}", "what": one.what, "steps": one.steps, "held": one.held})


def _how(one: Replaced) -> str:
    if one.how == "replaced":
        return f"never steps: another {one.used} over the same parameters does, {one.steps} times, from nothing"
    if one.how == "emptied":
        return "holds none of it at its first step: it was emptied in between"
    return "stands at 1 after its first step: it was set back in between"
