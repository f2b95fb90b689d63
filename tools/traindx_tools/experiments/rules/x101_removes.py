"""One change was made, and the symptom that the control shows is gone.

The control and the run with the change differ in nothing else: same files, command, seed and number of threads, each in
a copy of its own. Controls with other seeds (placebos) show the symptom as well, so that a change which only draws
other random numbers is not mistaken for a cause. An event is gone where all of three controls show it and none of two
changed runs does, three times as far as its onset; a number where it passes its bound beyond the controls' spread.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.finding import found
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X101",
    name="experiment-removes",
    title="The symptom goes with one change",
    severity=Severity.HIGH,
    sees="The runs of an experiment: controls, placebos, runs with one change, and the outcome measured in each.",
    matters="It is the nearest to a proof that runs can give: what was changed takes part in causing the symptom.",
    alike=("a change that hides the symptom: clipping hides a learning rate that is too high",
           "a change that takes part and is not at fault: no data, no loss that is NaN"),
    confirm=("make a fix of it and let traindx verify that",
             "the opposite change makes the symptom come, or come earlier"),
    thresholds={
        "controls": Threshold(3, "runs", "all show it, and 2 changed runs do not: chance does so in 3.9 % at most"),
        "horizon": Threshold(3, "times the onset", "a change that delays by less moves the symptom"),
    },
)


def check(result: Result) -> Iterator[Finding]:
    """The finding of an experiment with this verdict."""
    if result.verdict.word == "removes":
        yield found(RULE, result, Bearing.CAUSE)
