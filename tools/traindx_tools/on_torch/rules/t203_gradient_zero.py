"""The gradients of some weights are exactly zero in every measured step.

The backward pass reaches these weights, and what arrives is 0.0: the units behind them are off for every sample (a
ReLU whose input is negative everywhere, a saturated function in half precision, a mask that removes everything, a
factor of zero). Nothing that the optimizer does can change them. `scope` is "whole" where no weight gets anything,
"upstream" where everything up to some module gets nothing and later modules do: the first of the modules that do get a
gradient is where it stops. A branch that starts at zero (LoRA) gets its gradient after the first step and is left
alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.gradients import SOURCE, GradientCourse
from traindx_tools.rules import Rule, Threshold

ROWS = 5

RULE = Rule(
    id="T203",
    name="live-gradient-zero",
    title="Gradients are exactly zero",
    severity=Severity.HIGH,
    sees="modules whose weights have a gradient of exactly 0.0 in every measured step",
    matters="these weights never change: what is behind them is not trained",
    alike=("no gradient at all (None): the graph does not reach the weights, see T302",
           "experts or embedding rows that the batches never used",
           "a loss that is exactly zero because everything is right"),
    confirm=("Print the share of zeros in the output of the module after the one that is named.",
             "Replace the activation by a leaky one for ten steps: the gradient appears."),
    thresholds={"rows": Threshold(ROWS, "measured steps, all exactly 0.0", "a gate at zero opens in a step or two")},
)


def check(course: GradientCourse) -> Iterator[Finding]:
    """At most one finding for all such modules together."""
    if len(course.steps) < ROWS or not course.modules:
        return
    norms = course.norms[1:] if len(course.steps) > ROWS else course.norms
    known = (~np.isnan(norms)).sum(axis=0) >= min(ROWS, len(norms))
    zero = [i for i in range(len(course.modules)) if known[i] and np.nanmax(norms[:, i]) == 0.0]
    if not zero or (np.nan_to_num(course.loss, nan=1.0) == 0.0).mean() > 0.5:
        return
    scope = _scope(zero, known)
    names = [course.modules[i] for i in zero]
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    alive = next((course.modules[i] for i in range(zero[-1] + 1, len(course.modules)) if i not in zero), None)
    until = f"; {alive} is the first after them that gets one" if alive else ""
    yield RULE.finding(
        f"the gradient of {listed} is exactly 0.0 in all {len(norms)} measured steps up to step {course.steps[-1]}"
        f"{until}", course.at(names[0]), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.HIGH if scope != "part" else Severity.MEDIUM if len(zero) > 1 else Severity.LOW,
        measured={"scope": scope, "module": names[0], "modules": len(zero), "of": int(known.sum()),
                  "first_alive": alive})


def _scope(zero: list[int], known: np.ndarray) -> str:
    """"whole", "upstream" (the first modules, and at least two or half of all) or "part"."""
    reached = [i for i in range(len(known)) if known[i]]
    if len(zero) == len(reached):
        return "whole"
    first = reached[: len(zero)]
    return "upstream" if first == zero and (len(zero) >= 2 or 2 * len(zero) >= len(reached)) else "part"
