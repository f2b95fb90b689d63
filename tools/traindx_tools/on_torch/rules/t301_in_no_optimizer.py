"""Parameters get gradients and no optimizer holds them.

Backward fills their gradients, and no step ever applies one. `kind` says why: "left-out" (the optimizer of the same
model was built from other parameters, or before these existed), "unregistered" (the layers lie in a plain Python list
or dict, so that `parameters()` does not see them), "never-stepped" (an optimizer with these parameters exists and its
`step` was never called). Where everything that is left out comes before everything that is held, a head is trained on
a backbone on purpose; that is reported as low: freezing the backbone would also spare its backward pass. Parameters
that change by other means than an optimizer are left alone, as are models of which nothing is held (a perceptual loss).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.membership import SOURCE, Member, Membership, listed, parents
from traindx_tools.rules import Rule, Threshold

STEPS = 3

RULE = Rule(
    id="T301",
    name="in-no-optimizer",
    title="Parameters that get gradients are in no optimizer",
    severity=Severity.CRITICAL,
    sees="parameters of called modules with a gradient, against the parameter groups of every optimizer that stepped",
    matters="these weights stay at their initialisation for the whole run",
    alike=("a backbone that is used as it is: freeze it", "weights that are updated by hand under no_grad",
           "a perceptual loss or a critic that another process trains"),
    confirm=('print([n for n, p in model.named_parameters() if id(p) not in {id(q) for g in optimizer.param_groups '
             'for q in g["params"]}])',),
    thresholds={"steps": Threshold(STEPS, "optimizer steps", "a second optimizer may step later")},
)


def check(seen: Membership) -> Iterator[Finding]:
    """One finding a kind."""
    if seen.steps < STEPS:
        return
    outside = [m for m in seen.members if m.wants_gradient and m.had_gradient and not m.held]
    kinds: dict[str, list[Member]] = {}
    for m in outside:
        kind = "unregistered" if not m.registered else "never-stepped" if m.waiting else "left-out"
        kinds.setdefault(kind, []).append(m)
    held = [m for m in seen.members if m.held]
    if "left-out" in kinds and not held:
        del kinds["left-out"]
    for kind, members in kinds.items():
        yield _finding(seen, kind, members, held)


def _finding(seen: Membership, kind: str, members: list[Member], held: list[Member]) -> Finding:
    names, count = parents(members), sum(m.numel for m in members)
    upstream = kind == "left-out" and max(m.order for m in members) < min(m.order for m in held)
    why = {
        "left-out": "; the optimizer holds other parameters of the same model" + (
            " that all come after them" if upstream else ""),
        "unregistered": "; they are called inside the model but are no registered part of it",
        "never-stepped": f"; the {members[0].waiting} that holds them was never stepped",
    }[kind]
    return RULE.finding(
        f"{listed(names)}: {len(members)} parameters ({count:,} values) get gradients and are in no optimizer that "
        f"steps, over {seen.steps} steps{why}", seen.at(names[0]), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.LOW if upstream else RULE.severity,
        measured={"kind": "backbone" if upstream else kind, "module": names[0], "parameters": len(members),
                  "values": count})
