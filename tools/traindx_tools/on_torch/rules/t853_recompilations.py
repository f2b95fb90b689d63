"""`torch.compile` compiles a function again and again.

A Python number that changes each step, shapes that vary, a list that grows: dynamo guards on them and compiles anew
when they differ. Each time costs seconds; after `recompile_limit` (8) it gives up and runs the function eagerly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.speed.compilations import Recompiled

MANY = 3

RULE = Rule(
    id="T853",
    name="recompilations",
    title="A compiled function is compiled again and again",
    severity=Severity.MEDIUM,
    sees="dynamo's own record of compilations: function, how often, the guard that failed",
    matters="seconds each time; at the limit the function runs eagerly for the rest of the run",
    alike=("one more compilation when a dimension is marked dynamic: the second shape, and no more",
           "train() and eval(), with and without gradients: two to four variants in all"),
    confirm=("`TORCH_LOGS=recompiles` prints each one with its reason",),
    thresholds={"times": Threshold(MANY, "beyond the first", "train/eval and one dynamic shape account for two")},
)


def check(recompiled: tuple[Recompiled, ...], step: int, source: str, rank: int) -> Iterator[Finding]:
    """One finding for each function compiled again at least three times or given up on; at most three."""
    for one in [r for r in recompiled if r.times >= MANY or r.limit_reached][:3]:
        end = ", and dynamo gave up on it: it runs eagerly" if one.limit_reached else ""
        yield RULE.finding(
            f"{one.function} was compiled {one.times} times again by step {step}{end}; the guard that failed: "
            f"{one.guard}", Location(file=one.file, line=one.line, step=step, rank=rank), source,
            bearing=Bearing.CAUSE, severity=Severity.HIGH if one.limit_reached else None,
            measured={"function": one.function, "times": one.times, "guard": one.guard,
                      "limit_reached": one.limit_reached})
