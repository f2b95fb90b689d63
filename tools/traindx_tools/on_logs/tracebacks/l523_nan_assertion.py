"""A check for nan or inf fired: anomaly mode, distributions, sampling, debug_nans, variances of one value.

Anomaly mode names the backward function and prints the forward frames that made it: that line, not the call of
backward, is where nan was born. `var()`/`std()` with degrees of freedom <= 0 took the variance of a single value,
which is nan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, forward_trace, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 40

RULE = Rule(
    id="L523",
    name="nan-assertion",
    title="A check for nan or inf fired",
    severity=Severity.CRITICAL,
    sees="Anomaly mode's function and forward line, distributions' constraints, multinomial, jax_debug_nans, own "
         "assertions.",
    matters="It names the operation in which the first non-finite value was born, or at least the first that noticed.",
    alike=("A metric that turns nan without any check (L101).",),
    confirm=("torch.autograd.set_detect_anomaly(True) gives the forward line; for JAX JAX_DEBUG_NANS=True.",
             "Print min, max and isfinite of the inputs of the named operation one step earlier."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("anomaly-backward", r"Function '(?P<function>\w+)' returned nan values in its (?P<output>\d+)th output",
     "the gradient of {function} is nan"),
    ("var-degrees-of-freedom", r"(?i)(?:(?P<function>\w+)\(\): )?degrees of freedom (?:is )?<= 0",
     "the variance of a single value was taken, which is nan"),
    ("probabilities", r"probability tensor contains either `?inf`?, `?nan`? or element < 0",
     "probabilities to sample from hold nan, inf or a negative value"),
    ("distribution-constraint", r"Expected parameter (?P<parameter>\w+) .{0,120}of distribution "
                                r"(?P<function>\w+).*found "
                                r"invalid values", "parameter {parameter} of {function} holds invalid values"),
    ("debug-nans", r"invalid value \((?P<value>nan|inf)\) encountered in (?P<function>\S+)",
     "JAX found {value} in the result of {function}"),
    ("non-finite-gradient", r"total norm .{0,80}non-finite|gradients? .{0,60}(?:is|are|contains?) (?:non-?finite"
                            r"|nan|inf)",
     "the gradient is not finite"),
    ("non-finite-loss", r"(?i)\bloss\b.{0,60}\b(?:is|was|became|=|:)\s*(?:nan|inf|not finite|non-?finite)"
                        r"|(?:nan|inf|non-?finite) (?:loss|in loss)|found (?:nan|inf)|stopping training.*(?:nan|inf)",
     "a check of the script found a non-finite loss"),
    ("min-loss-scale", r"Minimum loss scale reached|Current loss scale already at minimum",
     "the loss scale fell to its minimum: gradients overflow at every scale"),
    ("input-nan", r"Input (?:X |y )?contains (?:NaN|infinity)|contains NaN or infinite|array must not contain "
                  r"infs or NaNs",
     "an input holds nan"),
    ("singular", r"(?:singular|not positive-definite|failed to converge|did not converge).{0,120}",
     "a decomposition failed: the matrix is singular or holds nan"),
))


def claims(event: ErrorEvent) -> bool:
    """Checks for non-finite values, the warning about degrees of freedom included."""
    if event.kind == "warning":
        return event.type == "degrees-of-freedom"
    return event.kind == "exception" and any(p.search(event.message) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, match, words = next(((k, m, w) for k, p, w in _KINDS for m in [p.search(incident.text)] if m is not None),
                              ("non-finite", None, "a check for values that are not finite spoke"))
    found: dict[str, Value] = {k: v for k, v in match.groupdict().items() if v is not None} if match else {}
    statement = words.format(**found)
    found = {k: f"a {v} value" if k == "value" else v for k, v in found.items()}
    if kind in ("non-finite-loss", "input-nan", "singular"):
        statement += f" ({short(incident.text, 100)})"
    trace = forward_trace(incident) if kind == "anomaly-backward" else None
    frame = trace.user_frame if trace is not None else None
    backward = kind == "anomaly-backward" and frame is None
    severity = Severity.MEDIUM if incident.printed.kind == "warning" else None
    if frame is not None:
        statement += "; the forward operation that made it is"
    return report(RULE, incident, statement, bearing=Bearing.SIGN, severity=severity,
                  measured={"kind": kind, "forward_known": frame is not None, **found}, frame=frame,
                  surfaced="the operation that made it was called in the forward pass" if backward else "")
