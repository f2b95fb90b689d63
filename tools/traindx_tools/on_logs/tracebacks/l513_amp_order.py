"""Automatic mixed precision was used in the wrong order; the message names the fault itself.

"Attempting to unscale FP16 gradients": trainable parameters are float16, because the model itself was cast (`.half()`,
`torch_dtype=float16`) instead of leaving the casts to autocast over float32 weights. "unscale_() has already been
called": unscaled twice since the last update, e.g. by hand and again through a trainer's clipping. "No inf checks were
recorded": the optimizer saw no gradients at all - wrong parameters, frozen ones, or a loss without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10

RULE = Rule(
    id="L513",
    name="amp-order",
    title="Mixed precision used in the wrong order",
    severity=Severity.CRITICAL,
    sees="GradScaler's assertions.",
    matters="The run is over. Cast away, the same mistake would train on wrong gradients.",
    alike=("A loss scale that collapses (L105) is a numerical problem, not an order.",),
    confirm=("{p.dtype for p in model.parameters() if p.requires_grad} must be {torch.float32}.",
             "Order: scale(loss).backward(), unscale_(opt), clip, step(opt), update(): each once a step."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("unscale-fp16", r"Attempting to unscale FP16 gradients",
     "GradScaler found float16 gradients: trainable parameters themselves are float16, the model was cast instead of "
     "leaving the casts to autocast"),
    ("unscale-twice", r"unscale_\(\) has already been called on this optimizer",
     "unscale_() was called twice on one optimizer between two updates"),
    ("unscale-after-step", r"unscale_\(\) is being called after step\(\)",
     "unscale_() was called after step()"),
    ("step-twice", r"step\(\) has already been called since the last update",
     "scaler.step() was called twice without scaler.update() between"),
    ("no-inf-checks", r"No inf checks were recorded",
     "GradScaler recorded no inf checks: the optimizer's parameters have no gradients at all"),
    ("attribute-scale", r"Attempted (?:step|unscale_|scale|update) but _scale is None",
     "the scaler was stepped before any loss was scaled"),
))


def claims(event: ErrorEvent) -> bool:
    """Assertions of torch.amp.GradScaler."""
    return event.kind == "exception" and any(p.search(event.message) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, words = next((k, w) for k, p, w in _KINDS if p.search(incident.text))
        yield report(RULE, incident, words, bearing=Bearing.CAUSE, measured={"kind": kind})
