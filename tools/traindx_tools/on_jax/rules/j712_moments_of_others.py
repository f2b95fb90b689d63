"""Second moments in a carried state only fade: they are not those of the gradients that the program meets.

A second moment is a mean of squares that forgets: v' = b v + (1 - b) g^2. Where it holds a thousand times the squares
of the gradients, every one of its values shrinks by the same factor from call to call, and what is left over that
factor is the square of the gradients. So the moments tell by themselves what was put into them; neither the optimizer
nor its constants need be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.moments import FACTOR, Strange
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J712",
    name="jax-moments-of-others",
    title="Carried second moments are not those of these gradients",
    severity=Severity.HIGH,
    sees="arrays of a carried state that are nowhere negative, of a parameter's shape, in the first calls of a "
         "function that trains: what they hold at first, and what is added to it",
    matters="steps are too small for as long as the memory lasts: 1 / (1 - beta2) steps",
    alike=("a state that is made anew, which is zero at first", "new data, whose gradients are several times smaller",
           "rows of an embedding that no batch holds: the others of the array are met"),
    confirm=("Start the optimizer's state anew (tx.init(params)), and run again.",
             "jax.tree.map(lambda v, g: v.mean() / (g ** 2).mean(), opt_state[0].nu, grads)"),
    thresholds={"factor": Threshold(FACTOR, "times the squares of the gradients", "gradients 30 times as large")},
)


def check(seen: Strange | None, function: str, calls: int, place: tuple[str, int] | None) -> Iterator[Finding]:
    """`calls`: of the function, over which it was measured; `place`: where the function is made."""
    if seen is None:
        return
    file, line = place or (None, None)
    root = math.sqrt(seen.factor)
    which = "they hold" if seen.kind == "scale" else f"{', '.join(seen.names[:4])} hold"
    others = "in the median of" if seen.kind == "scale" else "unlike the others of"
    yield RULE.finding(
        f"the second moments that {function} was given first only fade in its {calls} first calls: {which} at least "
        f"{seen.factor:,.0f} times the squares of the gradients since, {others} {seen.parameters} arrays, as if of "
        f"gradients {root:,.0f} times as large: each step is too small by that",
        Location(file=file, line=line, module=function), "the running process", bearing=Bearing.CAUSE,
        measured={"kind": seen.kind, "factor": seen.factor, "parameters": seen.parameters, "names": seen.names,
                  "calls": calls, "how": f"they were made of gradients {root:,.0f} times as large"})
