"""One change was made, and the symptom is as without it.

Either the run is the same bit for bit in all its records, or the event comes at the same step, or the difference of the
numbers is compatible only with effects below ten per cent of the level. That is more than "no difference was seen":
where the spread of the controls leaves larger effects possible, the verdict is inconclusive (X104).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.finding import found
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X103",
    name="experiment-no-effect",
    title="One change does nothing to the symptom",
    severity=Severity.INFO,
    sees="The runs of an experiment: controls, placebos, runs with one change, and the outcome measured in each.",
    matters="What was changed is not the cause, or not alone: another one can be looked for.",
    alike=("a change that did not reach what it was meant to reach: the experiment says where it took hold",),
    confirm=("the place where it took hold is the one that was meant",),
    thresholds={
        "margin": Threshold(0.1, "of the level", "effects below it cannot be the symptom; see compare.py"),
    },
)


def check(result: Result) -> Iterator[Finding]:
    """The finding of an experiment with this verdict."""
    if result.verdict.word == "no-effect":
        yield found(RULE, result, Bearing.SIGN)
