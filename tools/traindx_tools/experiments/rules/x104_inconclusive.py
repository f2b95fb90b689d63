"""One change was made, and what was measured decides nothing. The statement says why.

The control does not show the symptom; the change took hold nowhere; it brings an error of its own; the time was not
enough (the command that goes on is named); or the spread between seeds is as large as the effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.finding import found
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="X104",
    name="experiment-inconclusive",
    title="An experiment that decides nothing",
    severity=Severity.INFO,
    sees="The runs of an experiment: controls, placebos, runs with one change, and the outcome measured in each.",
    matters="Nothing may be concluded from it, in neither direction.",
    alike=("no effect (X103), which is a result",),
    confirm=("more time (--budget), another outcome (--outcome), or a change that takes hold",),
)


def check(result: Result) -> Iterator[Finding]:
    """The finding of an experiment with this verdict."""
    if result.verdict.word == "inconclusive":
        yield found(RULE, result, Bearing.COMPANION)
