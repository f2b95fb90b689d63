"""A reference is a model of its own.

`ref_model = model` copies a reference, not the weights: the "reference", "target" or "teacher" is trained along, its
KL to the policy is exactly 0, its targets move with every step. `copy.deepcopy(model)`, or a second instance that loads
the state, makes a second model. Told where an optimizer steps the module and it is used by the new name, or called
without gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("state", ("C186",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every module that gets the name of one that is read and not trained."""
    told: set[str] = set()
    for one in program.aliases:
        if not one.is_reference or str(one.at) in told:
            continue
        for run in program.runs:
            held = [m for a, _ in run.acts(Moment.STEP) for o in a.optimizers for m in o.holds or ()]
            read = [m for a, _ in run.acts(Moment.FORWARD) if a.gradients is False for m in a.models or ()]
            if any(m.inside & one.model.inside for m in held) and (
                    one.is_used or any(m.inside & one.model.inside for m in read)):
                told.add(str(one.at))
                yield Breach(
                    "C186", f"{one.name} = {one.of} at {one.at} is the same model under another name, no copy: what is "
                    "meant to stay fixed is trained along", one.at, measured={"kind": "alias", "name": one.name,
                                                                              "of": one.of})
                break
