"""A logarithm (or a division) of something that reaches exactly 0.

A softmax or sigmoid underflows to exactly 0 and saturates to exactly 1, a ReLU, a count or a variance is 0 by design;
log gives -inf there, 0 * -inf gives NaN, and the gradient is lost. The rule computes bounds as the dtype does:
`clamp(p, 1e-10, 1 - 1e-10)` guards log(p) but not log(1 - p), because 1 - 1e-10 is 1 in float32 (spacing 6e-8 below 1).
An added or clamped epsilon that the dtype resolves silences it, as does `where` with a guarded branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.finding import Value as Plain
from traindx_tools.on_code import epsilon
from traindx_tools.on_code.bounds import RESOLUTION, rounded
from traindx_tools.on_code.names import is_array_library
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import losses
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Site, Tensor, Value, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C107",
    name="unguarded-log",
    title="Logarithm of something that can be 0",
    severity=Severity.HIGH,
    sees="log(x) where the arithmetic lets x be exactly 0.",
    matters="-inf in the loss, NaN in the gradient and, one step later, in every weight.",
    alike=("overflow in exp", "a learning rate that is too high"),
    confirm=("print x.min() just before the log at the failing step", "torch.autograd.set_detect_anomaly(True)"),
    thresholds={"spacing below 1": Threshold(2.0**-24, "float32", "IEEE 754 binary32")},
)
_LOGS = ("log", "log2", "log10")
_KNOWN = ("softmax", "sigmoid")
_CLAMPS = ("clamp", "clip", "clamp_", "clip_", "clamp_min", "maximum")


_Clamps = dict[Site, list[Event]]
"""The calls that bound values, by their place."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every logarithm of an array."""
    clamps: _Clamps = {}
    for event in project.calls(*_CLAMPS):
        if not event.name.startswith("Const"):
            clamps.setdefault(event.site, []).append(event)
    judged: list[tuple[Event, Tensor]] = []
    for event in project.calls(*_LOGS):
        value = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        array = isinstance(event.receiver, Tensor) or is_array_library(event.name)
        if isinstance(value, Tensor) and array and _reaches_zero(value):
            judged.append((event, value))
    guardable: dict[Site, list[tuple[Event, Tensor]]] = {}
    for event, value in judged:
        if _guardable(event, value, clamps):
            guardable.setdefault(event.site, []).append((event, value))
    for event, value in judged:
        beside = guardable.get(event.site, [])
        yield _finding(event, value, clamps, losses.guarded_logs(beside) if (event, value) in beside else ())


def _reaches_zero(value: Tensor) -> bool:
    return value.low is not None and value.low <= 0 and not value.high == value.low == 0


def _guardable(event: Event, value: Tensor, clamps: _Clamps) -> bool:
    """Whether it is a probability that nobody has bounded yet."""
    within = value.kind in _KNOWN or (value.low == 0 and value.high is not None and value.high <= 1)
    return within and _attached(event, value) and _clamp_of(value, clamps) is None


def _attached(event: Event, value: Tensor) -> bool:
    return event.differentiated if event.name.startswith("jax.") else bool(value.grad) and event.grad is not False


def _finding(event: Event, value: Tensor, clamps: _Clamps, guards: tuple[Patch, ...]) -> Finding:
    attached, known = _attached(event, value), value.kind in _KNOWN
    patch = _patch(value, clamps, event.name.startswith("numpy.")) or guards
    source = f"{value.kind} output from {value.kind_site}" if value.kind and value.kind_site else _described(
        value, f"{event.file.path}:{event.line}")
    severity = Severity.HIGH if attached else Severity.MEDIUM if known and value.grad is None else Severity.LOW
    if "spread" in value.tags and attached:
        severity = Severity.MEDIUM
    high = None if value.high is None else value.high
    bound: Plain = "unbounded" if high is None else high
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} takes the logarithm of {source}"
        f"{' that' if source == 'a value' else ', which'} reaches exactly {value.low:g}"
        + ("; its gradient is infinite there" if attached else "") + _why(value, clamps),
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if known or attached or patch else Bearing.SIGN,
        severity=severity,
        measured={
            "kind": "log",
            "low": value.low,
            "high": bound,
            "of": value.kind or "expression",
            "dtype": value.dtype or "float32",
            "in_graph": attached,
        },
        patch=patch,
    )


def _clamp_of(value: Tensor, clamps: _Clamps) -> Event | None:
    """The one clamp that the value went through."""
    sites = {value.site, *value.parents}
    through = {(site, ast.dump(c.node)): c for site in sites if site is not None for c in clamps.get(site, ())}
    return next(iter(through.values())) if len(through) == 1 else None


def _why(value: Tensor, clamps: _Clamps) -> str:
    """Why the clamp that somebody wrote does not help: its upper limit is 1 in the dtype."""
    clamp = _clamp_of(value, clamps)
    if clamp is None:
        return ""
    dtype = value.dtype or "float32"
    own = isinstance(clamp.receiver, Tensor)
    upper = number(clamp.argument(1 if own else 2, "max") or clamp.kwargs.get("a_max"))
    said = f"; the clamp {clamp.file.segment(clamp.node)} at {clamp.file.path}:{clamp.line} does not prevent it"
    half = RESOLUTION.get(dtype, RESOLUTION["float32"]) / 4
    if upper is None or upper >= 1 or rounded(upper, dtype) < 1:
        return said
    name = epsilon.named(clamp.node)
    return (
        f"{said}: 1 - {name or format(1 - upper, '.1g')} is exactly 1 in {dtype}"
        + (f" ({name} = {1 - upper:.1g})" if name else "")
        + f", as for every epsilon below {half:.0e}".replace("e-0", "e-")
    )


def _patch(value: Tensor, clamps: _Clamps, numpy: bool) -> tuple[Patch, ...]:
    """Raises the epsilon of the one clamp that the value went through; numpy's dtype must be known for that."""
    clamp = _clamp_of(value, clamps)
    if clamp is None or (numpy and value.dtype is None):
        return ()
    return epsilon.raised(clamp.file, clamp.node, value.dtype or "float32")


def _described(value: Value, here: str) -> str:
    site = value.site if isinstance(value, Tensor) else None
    return f"a value from {site}" if site and str(site) != here else "a value"  # of this line: its text says it
