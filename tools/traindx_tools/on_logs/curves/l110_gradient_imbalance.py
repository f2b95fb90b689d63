"""One module's gradient norm is a hundred times another's, and both are alive.

A factor of a hundred between modules that share one learning rate means that the small one hardly moves while the large
one sets the clipping. It has ordinary reasons too (an embedding beside a head, a normalisation's bias), so that the
finding is a remark to look at, and a cause only beside something that goes wrong. A module whose gradient is zero or
dead is another matter (L103, L104).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import number
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

IMBALANCE, DEAD, RECORDS = 100.0, 1e-8, 5

RULE = Rule(
    id="L110",
    name="gradient-imbalance",
    title="One module's gradients are a hundred times another's",
    severity=Severity.LOW,
    sees="Gradient norms by module (grad_norm/<module>), medians over the last half of the log.",
    matters="Under one learning rate and one clip, the module with the small gradient hardly learns.",
    alike=("A module with gradients of zero: L104; dead early layers: L103.",
           "Adam divides by the gradient's own scale: there it matters through clipping and weight decay only."),
    confirm=("Print the ratio of update to weight norm for both modules: about 1e-3 each is healthy.",
             "Train 200 steps with a learning rate of its own for the small module."),
    thresholds={
        "imbalance": Threshold(IMBALANCE, "times", "Systematic Debugging skill: one module 100 times another"),
        "dead": Threshold(DEAD, "norm", "Systematic Debugging skill: below it a module is dead, not small"),
        "records": Threshold(RECORDS, "records of each module", "fewer are a moment, not a state"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the largest against the smallest module that is alive."""
    levels = sorted(((_level(s), s) for s in _modules(run)), key=lambda pair: pair[0])
    alive = [(level, s) for level, s in levels if level > DEAD]
    if len(alive) < 2:
        return
    (low, small), (high, large) = alive[0], alive[-1]
    if high < IMBALANCE * low:
        return
    yield RULE.finding(
        f"{large.original} is {number(high / low)} times {small.original} ({number(high)} against {number(low)}, "
        "medians of the last half of the log)",
        large.at(len(large) // 2, -1), large.source, bearing=Bearing.COMPANION,
        measured={"large": large.name.partition("/")[2], "small": small.name.partition("/")[2], "ratio": high / low,
                  "high": high, "low": low, "modules": len(alive)})


def _modules(run: Run) -> Iterator[Series]:
    for s in run.series:
        if s.name.startswith("grad_norm/") and len(s) >= RECORDS and bool(s.finite.all()):
            yield s


def _level(s: Series) -> float:
    with np.errstate(over="ignore"):  # the mean of two middle values may overflow
        return float(np.median(s.values[len(s) // 2:]))
