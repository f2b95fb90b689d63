"""An optimizer steps, and none of its parameters belongs to the model that is trained.

None of them ever had a gradient and none is a parameter of a module that was called, while the called model gets
gradients that nobody applies: the optimizer was built over another instance (before a copy, a reload, a compile, a
conversion), or over an empty or unrelated list.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.membership import SOURCE, Member, Membership
from traindx_tools.rules import Rule, Threshold

STEPS = 3

RULE = Rule(
    id="T307",
    name="optimizer-of-others",
    title="The optimizer holds parameters that are not the model's",
    severity=Severity.CRITICAL,
    sees="parameters of each optimizer that steps, against those of every module that was called",
    matters="every step changes nothing: the model that computes the loss stays as it is",
    alike=("parameters that are used without a module and get gradients: not reported",),
    confirm=('print(len({id(p) for p in model.parameters()} & {id(p) for g in optimizer.param_groups '
             'for p in g["params"]}))',),
    thresholds={"steps": Threshold(STEPS, "optimizer steps", "the first may come before any backward pass")},
)


def check(seen: Membership) -> Iterator[Finding]:
    """One finding for each such optimizer."""
    trained = [m for m in seen.members if m.had_gradient and not m.held]
    if seen.steps < STEPS or not trained:
        return
    for name, count, alike in seen.strangers:
        if count == 0:
            yield _empty(seen, name, trained)
            continue
        same = f"; {alike} of them have the shape of one that does: another instance of the same model" if (
            alike and alike >= count // 2) else ""
        yield RULE.finding(
            f"none of the {count} parameters of the {name} ever had a gradient or belongs to a module that was called, "
            f"over {seen.steps} steps, while {len(trained)} parameters of the called model ({trained[0].path}, ...) "
            f"get gradients that nothing applies{same}", seen.at(trained[0].module), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "another-instance" if same else "others", "optimizer": name, "parameters": count,
                      "module": trained[0].module})


def _empty(seen: Membership, name: str, trained: list[Member]) -> Finding:
    return RULE.finding(
        f"the {name} that steps holds no parameter at all, over {seen.steps} steps, while {len(trained)} parameters of "
        f"the called model ({trained[0].path}, ...) get gradients that nothing applies", seen.at(trained[0].module),
        SOURCE, bearing=Bearing.CAUSE, measured={"kind": "empty", "optimizer": name, "parameters": 0,
                                                    "module": trained[0].module})
