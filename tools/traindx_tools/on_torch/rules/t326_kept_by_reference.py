"""A state that was kept as "the best" is the running model itself.

`state_dict()` gives tensors that are the parameters: they change with every step. A state taken at one step and loaded
back, or saved, at a later one holds the latest weights, and nothing is restored. `kind`: "loaded" or "saved". A state
that is saved several times is meant as a live view and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, Kept
from traindx_tools.rules import Rule

RULE = Rule(
    id="T326",
    name="kept-by-reference",
    title="The weights that were kept are the running ones",
    severity=Severity.CRITICAL,
    sees="the memory of a state that is loaded or saved steps after state_dict() gave it",
    matters="the last weights are evaluated and shipped, not the best ones",
    alike=("a copy (copy.deepcopy, clone) of each tensor", "a view that is saved at every checkpoint"),
    confirm=("a = model.state_dict(); next(iter(a.values())).data_ptr() == next(model.parameters()).data_ptr()",),
)


def check(these: Sequence[Kept]) -> Iterator[Finding]:
    """One finding a use."""
    for seen in these:
        if seen.times > 1 and seen.kind == "saved":
            continue
        line = f" (line {seen.taken.line})" if seen.taken.line is not None else ""
        yield RULE.finding(
            f"the state of {seen.model} that was taken after step {seen.taken.step}{line} is {seen.kind} after step "
            f"{seen.used.step}: its tensors are the parameters themselves and changed along with them",
            seen.used.where(), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": seen.kind, "module": seen.model, "taken": seen.taken.step, "used": seen.used.step})
