"""An optimizer was given second moments that are not those of the gradients it meets.

A state is stored by place: parameters that come in another order (groups by decay, a module that was added before)
meet the moments of others of the same shape, and nothing complains. A loss that was a sum, or that was scaled, leaves
moments of another size: until they fade (1 / (1 - beta2) steps) every update is too small by the root of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.measures.moments import ANOTHERS, OWN
from traindx_tools.on_variables.moments import FACTOR, Strange
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.nonfinite.places import Place

SOURCE = "torch probe: loaded moments"

RULE = Rule(
    id="T734",
    name="moments-of-others",
    title="Loaded second moments are not those of these gradients",
    severity=Severity.HIGH,
    sees="the second moments of an optimizer whose state was loaded, and the squares of the gradients of the first "
         "steps since",
    matters="each weight gets the step size of another one, or all steps are too small for as long as the memory lasts",
    alike=("new data, whose gradients are several times larger or smaller: no factor of a thousand in the square",
           "a state that is made anew"),
    confirm=("Leave the optimizer's state out of what is loaded, and run again.",
             "print([(s['exp_avg_sq'].mean(), p.grad.pow(2).mean()) for p, s in optimizer.state.items()])"),
    thresholds={"factor": Threshold(FACTOR, "times the squares of the gradients", "gradients 30 times as large"),
                "own": Threshold(OWN, "correlation with the own gradients, at most", "no pattern in common"),
                "others": Threshold(ANOTHERS, "correlation with another's, both ways, at least", "its own pattern")},
)


def check(seen: Strange | None, optimizer: str, step: int, rank: int = 0,
          place: Place | None = None) -> Iterator[Finding]:
    """`step`: the optimizer's step after which it was judged; `place`: where the state was loaded."""
    if seen is None:
        return
    file, line = (place.file, place.line) if place is not None else (None, None)
    where = Location(file=file, line=line, step=float(step), rank=rank, module=optimizer)
    if seen.kind == "scale":
        told = (f"the second moments that {optimizer} was given are {seen.factor:,.0f} times the squares of the "
                f"gradients of the {seen.steps} steps since, in the median of {seen.parameters} parameters: they were "
                f"made of gradients {math.sqrt(seen.factor):,.0f} times as large, and each step is too small by that")
        how = f"they were made of gradients {math.sqrt(seen.factor):,.0f} times as large"
    elif seen.kind == "part":
        told = (f"the second moments that {optimizer} was given for {', '.join(seen.names)} are {seen.factor:,.0f} "
                f"times the squares of the gradients of the {seen.steps} steps since, those of the others are not: "
                f"the steps of these are too small by {math.sqrt(seen.factor):,.0f} for as long as the memory lasts")
        how = f"those of {seen.names[0]} were made of gradients {math.sqrt(seen.factor):,.0f} times as large"
    else:
        told = (f"the second moments that {optimizer} was given are exchanged between parameters of one shape: "
                f"{'; '.join(seen.names[:3])} (correlation with the gradients of the own parameter {seen.own:.2f}, of "
                f"the other one {seen.others:.2f})")
        how = f"{seen.names[0]} have each other's"
    yield RULE.finding(told, where, SOURCE, bearing=Bearing.CAUSE,
                       measured={"kind": seen.kind, "factor": seen.factor, "parameters": seen.parameters,
                                 "names": seen.names, "how": how})
