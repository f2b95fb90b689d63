"""Which of NumPy's warnings can be where a metric stopped being finite, and why the others are not.

NumPy warns where a value becomes infinite or NaN and not where such a value is handed on (IEEE 754: quiet operands
raise no flag), once a place. So their order in the log tells much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident

KIND = "numpy-nonfinite"
MET = re.compile(r"(?P<what>(?:invalid value|overflow|divide by zero) encountered in [\w ]+)")

NEAR = 2
"""So many finite records after a warning say nothing: the batch that was printed need not be the one that failed."""


def met(event: ErrorEvent) -> str:
    """What NumPy met: an overflow in exp and a logarithm of 0 at one line are two facts."""
    found = MET.search(event.message)
    return found["what"] if found is not None else ""


def no_origins(run: Run, warned: Sequence[Incident]) -> Mapping[int, str]:
    """By the line of the warning: why it is not where a metric stopped being finite."""
    found: dict[int, str] = {}
    for source in {i.printed.source for i in warned}:
        own = sorted((i for i in warned if i.printed.source == source), key=lambda i: i.printed.line)
        absorbed = {i.printed.line: "what overflowed became the 0 that the logarithm in the same statement met"
                    for i in own if _became_the_zero_of_a_logarithm(i, own)}
        found |= absorbed
        rest = [i for i in own if i.printed.line not in absorbed]
        found |= _by_order(run, source, rest)
    return found


def _became_the_zero_of_a_logarithm(incident: Incident, warned: Sequence[Incident]) -> bool:
    """A logarithm that meets 0 had a finite argument: inf was divided by before, as in log(1 / (1 + exp(-z)))."""
    return "overflow" in met(incident.error) and any(
        "divide by zero encountered in log" in met(other.error) and other.printed.line > incident.printed.line
        and _place(other) is not None and _place(other) == _place(incident) for other in warned)


def _by_order(run: Run, source: str, warned: Sequence[Incident]) -> dict[int, str]:
    """In a log with a metric that is not finite: what came later than that, what was survived, what came behind."""
    series = [s for s in run.series if s.source == source and len(s)]
    broken = min((int(s.line[~s.finite][0]) for s in series if not s.finite.all()), default=None)
    if broken is None:
        return {}
    records = np.unique(np.concatenate([s.line for s in series]))
    after = {i.printed.line: int(((records > i.printed.line) & (records < broken)).sum()) for i in warned}
    found = {line: f"line {broken} of the log was not finite before that" for line in after if line > broken}
    before = [i for i in warned if i.printed.line < broken]
    near = [i for i in before if after[i.printed.line] <= NEAR]
    if near:
        survived = [i.printed.line for i in before if i not in near]
        found |= {line: f"{after[line]} finite records followed it" for line in survived}
        found |= {i.printed.line: f"after the {met(near[0].error)}" for i in near[1:]}
    return found


def _place(incident: Incident) -> tuple[str, int | None] | None:
    frame = incident.frame
    return None if frame is None else (frame.file, frame.line)
