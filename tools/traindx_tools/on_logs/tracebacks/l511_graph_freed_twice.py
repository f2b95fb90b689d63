"""Backward went through a graph that an earlier backward had freed.

A hidden state, a loss or another tensor of an earlier step is still attached to its graph: carried over without
`detach()`, kept in a list or buffer, or two losses that share a graph and are driven back separately.
`retain_graph=True` hides it and makes memory and time grow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 15

RULE = Rule(
    id="L511",
    name="graph-freed-twice",
    title="Backward through a graph that was already freed",
    severity=Severity.CRITICAL,
    sees="'Trying to backward through the graph a second time'.",
    matters="The run is over; retain_graph=True would turn it into growing memory and wrong gradients.",
    alike=("A tensor changed in place (L512).",),
    confirm=("Look for tensors that live across steps: hidden states, running losses, caches, replay buffers.",
             "Print t.grad_fn of what is carried over: it must be None."),
)

_MESSAGE = re.compile(r"Trying to backward through the graph a second time|Saved (?:intermediate"
                      r"|variables).{0,60}already been "
                      r"freed|Specify retain_graph=True")


def claims(event: ErrorEvent) -> bool:
    """Autograd's message about a freed graph."""
    return event.kind == "exception" and _MESSAGE.search(event.message) is not None


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        first = incident.step is None or incident.step <= 1
        when = "" if first else ": the first step went through, so something is carried over to the next one"
        yield report(RULE, incident, f"backward went a second time through a graph whose buffers are freed{when}",
                     bearing=Bearing.SIGN, measured={"kind": "graph-freed"},
                     surfaced="the tensor that was not detached was made earlier")
