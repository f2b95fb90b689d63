"""A callback looked for a metric that was not logged.

Lightning's EarlyStopping, ModelCheckpoint and a plateau schedule, and the Trainer of transformers with
`metric_for_best_model`, look a metric up by its name. A name that is not among those that were logged ends the run
after its first validation; where the callback is not strict it is a warning, and nothing is stopped, kept or lowered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 12

RULE = Rule(
    id="L533",
    name="watched-metric-missing",
    title="A watched metric is not logged",
    severity=Severity.CRITICAL,
    sees="Errors and warnings of Lightning and transformers about a monitored metric that is not available.",
    matters="The run is over after its first validation, or what should watch the metric does nothing.",
    alike=("A metric of the program's own dictionary that is not there (L525).",),
    confirm=("print(sorted(trainer.callback_metrics)) after one validation.",),
)

_MISSING = (
    ("early-stop", re.compile(r"Early stopping conditioned on metric `(?P<metric>[^`\n]+)` which is not available")),
    ("schedule", re.compile(r"conditioned on metric (?P<metric>\S+) which is not available")),
    ("checkpoint", re.compile(r"monitor='(?P<metric>[^'\n]+)'\)` could not find the monitored key")),
    ("best-model", re.compile(r"set to '(?P<metric>[^'\n]+)', which is not found in the evaluation metrics")),
    ("early-stop", re.compile(r"early stopping required metric_for_best_model, but did not find (?P<metric>\w+)")),
)
"""Wordings of lightning 1.5 to 2.5 and of transformers 4.20 to 4.57."""
_LOGGED = re.compile(r"(?:following|[Aa]vailable[\w ]* metrics are|returned metrics): *\[?(?P<names>[^\n\]]+)")


def claims(event: ErrorEvent) -> bool:
    """What callbacks say where they do not find their metric."""
    return any(pattern.search(event.message) for _, pattern in _MISSING)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, found = next((k, m) for k, p in _MISSING if (m := p.search(incident.text)))
        measured: dict[str, Value] = {"kind": kind, "metric": found["metric"]}
        logged = _LOGGED.search(incident.text)
        beside = f": logged are {logged['names'].strip()[:120]}" if logged is not None else ""
        yield report(RULE, incident, f"{found['metric']!r} is watched and was not logged{beside}",
                     bearing=Bearing.CAUSE, measured=measured)
