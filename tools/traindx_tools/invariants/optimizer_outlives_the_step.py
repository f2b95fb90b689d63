"""An optimizer lives longer than the step that it takes.

Adam's moments, momentum and step counts live in the optimizer. Made inside the loop over batches they start from zero
each time: every Adam step is its first one, of size lr for every weight whatever the gradient, and momentum never
builds up. A scheduler attached to it starts over as well. One that is made with the model of the same turn (the inner
loop of meta-learning) and one without state (plain SGD) lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.invariants.scenarios import by_hand
from traindx_tools.program.known import Known
from traindx_tools.program.moments import conditions_within, training_loop
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("step_order", ("C151",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every optimizer that is made in a loop that trains."""
    for run in by_hand(program):
        for act, path in run.acts(Moment.MADE):
            loop = training_loop(path)
            if loop is None or path[-1].kind == "arm" or conditions_within(path, loop):
                continue
            stepped = {id(o) for a, p in run.acts(Moment.STEP) if training_loop(p) is loop for o in a.optimizers}
            for optimizer in act.optimizers:
                if optimizer.remade and optimizer.stateful and id(optimizer) in stepped:
                    yield Breach(
                        "C151",
                        f"{optimizer.kind} is made at {act.at} inside the loop at line {loop.at.line} that steps it: "
                        "its moments start from zero in every iteration",
                        act.at, Known.DERIVED, {"kind": "rebuilt", "loop_line": loop.at.line},
                        remedy=Remedy("out of the loop", act, None, str(loop.at.line)))
