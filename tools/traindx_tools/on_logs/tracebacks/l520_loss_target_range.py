"""A loss refused its target or its input: a class out of range, a wrong dtype or shape, a probability outside [0, 1].

"Target 10 is out of bounds" with 10 classes means labels from 1 to 10 (or an ignored label that is not declared).
Binary cross entropy outside [0, 1] means logits without a sigmoid, or nan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 40

RULE = Rule(
    id="L520",
    name="loss-target-range",
    title="A loss refused its target",
    severity=Severity.CRITICAL,
    sees="Targets out of bounds, target dtypes and shapes that a loss does not take, inputs outside [0, 1].",
    matters="On a GPU the same fault is a device-side assert without a line.",
    alike=("An index into an embedding (L504).", "A shape mismatch outside losses (L505)."),
    confirm=("labels.min(), labels.max(), labels.dtype, labels.shape against logits.shape.",
             "Count the labels that are not in range(num_classes), -100 included."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("target-out-of-bounds", r"Target (?P<target>-?\d+) is out of bounds", "label {target} is not a class of the loss"),
    ("target-dtype", r"expected target dtype to be (?P<expected>[\w ]+), but got (?P<got>\w+)",
     "the target is {got} where the loss takes {expected}"),
    ("target-dtype", r"(?:nll_loss|cross_entropy|loss)\w*\"? (?:not implemented for|expected) '?(?P<got>\w+)",
     "the loss does not take a target or input of {got}"),
    ("input-outside-0-1", r"all elements of (?P<which>input|target) should be between 0 and 1",
     "the {which} of binary cross entropy is outside [0, 1]: logits without a sigmoid, or nan"),
    ("target-size", r"Using a target size \((?P<target>torch\.Size\([^)]*\))\) that is different to the input size "
                    r"\((?P<input>torch\.Size\([^)]*\))\)",
     "the target has size {target} and the input {input}"),
    ("target-size", r"Target size \((?P<target>torch\.Size\([^)]*\))\) must be the same as input size "
                    r"\((?P<input>torch\.Size\([^)]*\))\)",
     "the target has size {target} and the input {input}"),
    ("target-size", r"Expected input batch_size \((?P<input>\d+)\) to match target batch_size \((?P<target>\d+)\)",
     "the input has {input} samples and the target {target}"),
    ("target-size", r"multi-target not supported|0D or 1D target tensor expected|Expected target size "
                    r"(?P<input>\[[^\]]*\]), "
                    r"got (?P<target>[^\n]*)|only batches of spatial targets supported",
     ""),
    ("class-count", r"Number of classes in y_true.*different|weight tensor should be defined either for all "
                    r"(?P<classes>\d+)",
     ""),
))


def claims(event: ErrorEvent) -> bool:
    """Messages of losses about their targets and inputs."""
    return event.kind == "exception" and any(p.search(event.message) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, match, words = next((k, m, w) for k, p, w in _KINDS for m in [p.search(incident.text)] if m is not None)
        found: dict[str, Value] = {k: v.strip() for k, v in match.groupdict().items() if v is not None}
        statement = words.format(**found) if words else f"a loss refused its target ({short(incident.text)})"
        yield report(RULE, incident, statement, bearing=Bearing.SIGN, measured={"kind": kind, **found})
