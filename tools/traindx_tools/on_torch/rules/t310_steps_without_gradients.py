"""The optimizer steps, and nothing it holds ever had a gradient: no backward pass took place.

Where backward() is never called, an optimizer skips every parameter whose gradient is None, without a word. In
Lightning that is a training_step which returns nothing (the framework warns once and goes on); by hand, a backward()
that was lost, or gradients of torch.autograd.grad that nobody puts into .grad.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

STEPS = 10

RULE = Rule(
    id="T310",
    name="steps-without-gradients",
    title="The optimizer steps without any gradient",
    severity=Severity.CRITICAL,
    sees="optimizer steps, backward passes, and the gradients that the optimizer's parameters have after each step",
    matters="no weight is ever changed, whatever the loss that is printed",
    alike=("an optimizer whose own parameters get none while others do (T307)",
           "gradients that are set by hand into .grad: they are seen"),
    confirm=("print(next(model.parameters()).grad) right before optimizer.step()",),
    thresholds={"steps": Threshold(STEPS, "optimizer steps in a row, from the first", "one warm-up step may be empty")},
)


def check(empty: int, steps: int, source: str, rank: int) -> Iterator[Finding]:
    """`empty`: steps after which no parameter had a gradient, with no backward pass so far; `steps`: of so many."""
    if empty < STEPS or empty < steps:
        return
    yield RULE.finding(
        f"backward() was never called: the optimizer stepped {steps} times and none of its parameters had a gradient, "
        "so no weight was changed",
        Location(step=steps, rank=rank), source, bearing=Bearing.CAUSE, measured={"steps": steps})
