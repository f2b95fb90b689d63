"""One change was made, and the symptom comes earlier or later, or its number is larger or smaller, but it is there.

How much it moved stands in the statement, with the interval in which the effect lies. It is called one where it is
larger than what chance does between seeds: Student's t at several looks that spend three per cent together, and more
than five per cent of the level, below which two runs are not told apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.finding import found
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X102",
    name="experiment-moves",
    title="The symptom moves with one change",
    severity=Severity.MEDIUM,
    sees="The runs of an experiment: controls, placebos, runs with one change, and the outcome measured in each.",
    matters="What was changed has a part in the symptom: it is on its way, or what makes it worse, but not all of it.",
    alike=("a change with a second effect of its own, such as another learning rate", "a symptom with two causes"),
    confirm=("a larger change of the same kind moves it further", "two changes together"),
    thresholds={
        "significance": Threshold(0.03, "of all looks", "below the 5 % that are promised; see compare.py"),
        "floor": Threshold(0.05, "of the level", "two runs are not told apart below it, as in verifications"),
    },
)


def check(result: Result) -> Iterator[Finding]:
    """The finding of an experiment with this verdict."""
    if result.verdict.word == "moves":
        yield found(RULE, result, Bearing.SIGN)
