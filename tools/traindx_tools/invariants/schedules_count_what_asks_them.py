"""A schedule is as long as it is asked often.

`optax.MultiSteps(adam(schedule), every_k_schedule=8)` asks the schedule once in 8 calls of update: one that is as long
as the loops around update (epochs times batches) gets to an eighth of its length, so that the warm-up takes 8 times as
long and the decay hardly begins. `chain(adam(schedule), apply_every(8))` asks it at every call: a length that was
divided by 8 is over after an eighth of the run.

Lightning steps a schedule at the end of each epoch unless `"interval": "step"` stands beside it: one that is as long as
the run has steps hardly moves, and one that is as long as it has epochs is over in the first batches. The Trainer of
transformers steps it after every update.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = (*pages("jax", ("C562",)), *pages("frameworks", ("C323",)))
CLOSE = 0.02
"""By how much a length may differ from the count that it is meant for: a last batch that is left out."""


def check(program: Program) -> Iterator[Breach]:
    """Compare the length of every schedule in a window with how often it is asked."""
    for hooked in program.hooked_schedules:
        if hooked.unit == "steps" and not hooked.by_step:
            how = "stands beside an interval of epochs" if hooked.told else "has no interval beside it"
            yield Breach("C323", f"{hooked.kind} at {hooked.at} is as long as the run has steps and {how}: Lightning "
                         "steps it once an epoch, and the rate hardly moves", hooked.at, measured={"kind": "per epoch"})
        elif hooked.unit == "epochs" and hooked.by_step:
            how = "stands beside \"interval\": \"step\"" if hooked.told else "Trainer steps it after every update"
            yield Breach("C323", f"{hooked.kind} at {hooked.at} is as long as the run has epochs and {how}: it is at "
                         "its end after as many batches", hooked.at,
                         measured={"kind": "per step"})
    for one in program.windows:
        counts = one.length if one.per_window else one.length * one.every
        if abs(counts - one.rounds) > CLOSE * one.rounds:
            continue
        if one.per_window:
            why = (f"the number of micro-batches, and is asked once for each {one.every:g} of them by {one.by}: "
                   f"warm-up takes {one.every:g} times as long, and the decay gets to 1/{one.every:g} of its length")
        else:
            why = (f"the number of windows, and {one.by} lets it be asked at every micro-batch: the rate is at its end "
                   f"after 1/{one.every:g} of the run")
        yield Breach("C562", f"{one.schedule} at {one.at} is {one.length:g} steps long, {why}", one.at,
                     measured={"kind": "micro-batches" if one.per_window else "windows", "window": one.every})
