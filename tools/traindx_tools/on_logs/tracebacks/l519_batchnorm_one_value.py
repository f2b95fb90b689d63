"""Batch normalisation got one value per channel in training: a batch of one sample.

Usually the last, smaller batch of an epoch (`drop_last=False` with a remainder of 1), or a batch size of 1 a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10

RULE = Rule(
    id="L519",
    name="batchnorm-one-value",
    title="Batch normalisation over a single value",
    severity=Severity.CRITICAL,
    sees="'Expected more than 1 value per channel when training' with the input's size.",
    matters="The run ends at the batch whose remainder is one sample.",
    alike=("A spatial size of 1x1 with a batch of 1 in instance normalisation.",),
    confirm=("len(dataset) % batch_size: 1 means the last batch.", "drop_last=True, or model.eval() for single "
                                                                   "samples."),
)

_MESSAGE = re.compile(r"Expected more than 1 (?:value per channel|spatial element) when training, got input size "
                      r"(?:torch\.Size\()?(?P<size>\[[\d, ]*\])")


def claims(event: ErrorEvent) -> bool:
    """Normalisation layers' check of the batch."""
    return event.kind == "exception" and "Expected more than 1" in event.message


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        match = _MESSAGE.search(incident.text)
        measured: dict[str, Value] = {"kind": "one-value"}
        size = ""
        if match is not None:
            measured["input_size"] = match["size"]
            size = f" (input size {match['size']})"
        yield report(RULE, incident, f"batch normalisation got one value per channel in training{size}: a batch "
                                     f"of one sample",
                     bearing=Bearing.CAUSE, measured=measured)
