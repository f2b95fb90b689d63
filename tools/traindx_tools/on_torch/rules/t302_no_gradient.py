"""Parameters that an optimizer holds never get a gradient: the graph does not reach them.

`kind`: "cut" where the module was called with gradients on and its output went on into a later module, or where it is
the first of the model: something between it and the loss cuts the graph (`detach`, `.data`, `argmax`, a round trip
through numpy, `no_grad`). The others are reported as low, since a model may have parts that a task does not use:
"without-gradients" (called under `no_grad` only), "not-called", "unused-output" (its output went nowhere).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.membership import SOURCE, Member, Membership, listed, parents
from traindx_tools.rules import Rule, Threshold

STEPS, BACKWARDS = 3, 4

RULE = Rule(
    id="T302",
    name="no-gradient",
    title="Parameters in the optimizer never get a gradient",
    severity=Severity.HIGH,
    sees="`.grad is None` after every measured backward pass for parameters that an optimizer holds",
    matters="these weights are not trained although the optimizer lists them; DDP stops at them",
    alike=("a part of a published model that the task does not use (a pooler, a second head)",
           "experts that no batch was routed to", "a gradient of exactly 0: see T203"),
    confirm=("print([n for n, p in model.named_parameters() if p.requires_grad and p.grad is None])",
             "print(output.requires_grad, output.grad_fn)  # of the module that is named, and of what follows it"),
    thresholds={"backwards": Threshold(BACKWARDS, "backward passes", "losses may take turns")},
)

_KINDS = {"cut": "cut", "first": "cut", "called": "unused-output", "without-gradients": "without-gradients",
          "not-called": "not-called", "unknown": "unknown"}  # fmt: skip
_WORDS = {
    "cut": "it was called with gradients on and what follows it used its output: the graph is cut in between",
    "unused-output": "it was called and its output went nowhere",
    "without-gradients": "it was only ever called without gradients",
    "not-called": "it was never called",
    "unknown": "how it was used is not known",
}


def check(seen: Membership) -> Iterator[Finding]:
    """One finding a kind."""
    if seen.steps < STEPS or seen.backwards < BACKWARDS:
        return
    without = [m for m in seen.members if m.wants_gradient and m.held and not m.had_gradient]
    if not any(m.had_gradient for m in seen.members):
        return  # nothing gets a gradient: the optimizer or the loss is the matter, see T307
    kinds: dict[str, list[Member]] = {}
    for m in without:
        kinds.setdefault(_KINDS[m.use], []).append(m)
    for kind, members in kinds.items():
        names, count = parents(members), sum(m.numel for m in members)
        yield RULE.finding(
            f"{listed(names)}: {len(members)} parameters ({count:,} values) of the optimizer had no gradient in "
            f"{seen.backwards} backward passes; {_WORDS[kind]}", seen.at(names[0]), SOURCE, bearing=Bearing.CAUSE,
            severity=Severity.HIGH if kind == "cut" else Severity.LOW,
            measured={"kind": kind, "module": names[0], "parameters": len(members), "values": count})
