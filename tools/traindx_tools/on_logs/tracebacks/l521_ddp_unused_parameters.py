"""DistributedDataParallel waited for gradients of parameters that the loss does not use.

A branch that is not taken, a head without a loss, a frozen part that still requires gradients, or a parameter used
twice ("marked as ready only once": checkpointing with reentrant backward, shared modules). The message lists the
parameters' indices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10
TOGETHER = True

RULE = Rule(
    id="L521",
    name="ddp-unused-parameters",
    title="DDP: parameters without a gradient, or ready twice",
    severity=Severity.CRITICAL,
    sees="'Expected to have finished reduction', 'Expected to mark a variable ready only once', with indices.",
    matters="The run is over; with uneven use across ranks it would hang instead.",
    alike=("A collective timeout (L515) when only one rank skips a branch.",),
    confirm=("TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters.",
             "After one backward on one process: [n for n, p in model.named_parameters() if p.requires_grad and "
             "p.grad is None]"),
)

_UNUSED = re.compile(r"Expected to have finished reduction in the prior iteration")
_TWICE = re.compile(r"Expected to mark a variable ready only once")
_INDICES = re.compile(r"did not receive grad(?: for rank (?P<rank>\d+))?: (?P<indices>[\d ]+)|Parameter at index "
                      r"(?P<index>\d+)"
                      r"(?: with name (?P<name>\S+))?")


def claims(event: ErrorEvent) -> bool:
    """DDP's reducer."""
    return event.kind == "exception" and bool(_UNUSED.search(event.message) or _TWICE.search(event.message))


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    match = _INDICES.search(incident.text)
    indices = (match["indices"] or match["index"] or "").split() if match else []
    measured: dict[str, Value] = {"kind": "ready-twice" if _TWICE.search(incident.text) else "unused",
                                  "parameters": len(indices)}
    if indices:
        measured["indices"] = tuple(int(i) for i in indices[:20])
    if match is not None and match["name"]:
        measured["name"] = match["name"]
    which = f" (indices {', '.join(indices[:8])}{' ...' if len(indices) > 8 else ''})" if indices else ""
    if measured["kind"] == "unused":
        statement = f"{len(indices) or 'some'} parameters got no gradient, because the loss does not use them{which}"
    else:
        statement = f"a parameter was marked ready twice in one backward{which}"
    return report(RULE, incident, statement, bearing=Bearing.CAUSE, measured=measured,
                  surfaced="it is noticed one iteration late" if measured["kind"] == "unused" else "")
