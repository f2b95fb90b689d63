"""A tensor that backward needs was changed in place, or a leaf parameter was.

The message names dtype, shape, the operation that made the tensor, and the two versions. Usual ways: `+=`,
`relu(inplace)` after a saved output, masks written into activations, an optimizer step between forward and backward
(GANs, RL), and a second forward of a DDP module or a BatchNorm that updates its buffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, forward_trace, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 15

RULE = Rule(
    id="L512",
    name="inplace-modified",
    title="A tensor needed by backward was changed in place",
    severity=Severity.CRITICAL,
    sees="'modified by an inplace operation' with shape and versions, 'a leaf Variable that requires grad ... "
         "in-place'.",
    matters="The run is over; without the check the gradient would be wrong.",
    alike=("A graph freed twice (L511).",),
    confirm=("torch.autograd.set_detect_anomaly(True): the warning's forward frames name the operation whose "
             "result changed.",
             "Search for +=, [...] = , .add_(, inplace=True on a tensor of the named shape, and for "
             "optimizer.step() between "
             "forward and backward."),
)

_MODIFIED = re.compile(r"modified by an inplace operation(?:: \[(?P<tensor>[\w.]+) (?P<shape>\[[\d, ]*\])\])?"
                       r"(?:.{0,40}output (?P<output>\d+) of (?P<operation>\w+))?(?:.{0,20}at version "
                       r"(?P<version>\d+); "
                       r"expected version (?P<expected>\d+))?", re.DOTALL)
_LEAF = re.compile(r"leaf Variable that requires grad.{0,40}in-place|view and is being modified inplace"
                   r"|view of a leaf Variable that requires grad")


def claims(event: ErrorEvent) -> bool:
    """Autograd's messages about changes in place."""
    return event.kind == "exception" and bool(_MODIFIED.search(event.message) or _LEAF.search(event.message))


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    match = _MODIFIED.search(incident.text)
    if match is None:
        return report(RULE, incident, "a leaf that requires a gradient was changed in place", bearing=Bearing.CAUSE,
                      measured={"kind": "leaf"})
    found: dict[str, Value] = {k: v for k, v in match.groupdict().items() if v is not None}
    what = f" of shape {match['shape']}" if match["shape"] else ""
    made = f", the output of {match['operation']}," if match["operation"] else ""
    versions = f" (version {match['version']}, expected {match['expected']})" if match["version"] else ""
    trace = forward_trace(incident)
    frame = trace.user_frame if trace is not None else None
    return report(RULE, incident, f"a tensor{what}{made} was changed in place before backward used it{versions}",
                  bearing=Bearing.SIGN, measured={"kind": "in-place", **found}, frame=frame,
                  surfaced="" if frame else "the change in place happened earlier")
