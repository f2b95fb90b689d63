"""Tensors on different devices meet in one operation: the message names both.

Usually a tensor made inside forward (a mask, positions) without `device=`, a buffer that is not registered, a batch
that was not moved, or a module added after `.to(device)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 45

RULE = Rule(
    id="L507",
    name="device-mismatch",
    title="Tensors on different devices meet",
    severity=Severity.CRITICAL,
    sees="The devices in 'Expected all tensors to be on the same device' and its kin.",
    matters="The run is over.",
    alike=("Two GPUs named: model parallel placement or a hard-coded cuda:0 on another rank.",),
    confirm=("Print .device of both operands one line above.",
             "List parameters and buffers by device: {p.device for p in [*model.parameters(), *model.buffers()]}"),
)

_D = r"(?:cuda|cpu|mps|xpu|meta|xla|npu|hpu)(?::\d+)?"
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile(pattern)) for kind, pattern in (
    ("operands", rf"same device, but found at least two devices, (?P<a>{_D})(?:,? and |, )(?P<b>{_D})"),
    ("operands", rf"same device, but got \w+ is on (?P<a>{_D}), different from other tensors on (?P<b>{_D})"),
    ("operands", rf"Tensor on device (?P<a>{_D}) is not on the expected device (?P<b>{_D})"),
    ("operands", rf"[Ee]xpected .{{0,80}}device (?:type )?(?P<b>{_D}) .{{0,40}}but got (?P<a>{_D})"),
    ("input-weight", r"Input type \((?P<a>torch\.(?:cuda\.)?\w+)\) and weight type "
                     r"\((?P<b>torch\.(?:cuda\.)?\w+)\) should be"),
    ("indices", rf"indices should be either on (?P<a>{_D}) or on the same device as the indexed tensor "
                rf"\((?P<b>{_D})\)"),
    ("numpy", rf"can't convert (?P<a>{_D}) device type tensor to numpy"),
    ("generator", rf"Expected a '(?P<b>{_D})' device type for generator but found '(?P<a>{_D})'"),
    ("data-parallel", rf"module must have its parameters and buffers on device (?P<b>{_D}) .* but found one of "
                      rf"them on device:"
                      rf" (?P<a>{_D})"),
    ("meta", r"Cannot copy out of meta tensor; no data"),
    ("jax-devices", r"Received incompatible devices for jitted computation"),
))


def claims(event: ErrorEvent) -> bool:
    """Messages about devices."""
    return event.kind == "exception" and any(_usable(p, event.message) for _, p in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, match = next((k, m) for k, p in _KINDS for m in [_usable(p, incident.text)] if m is not None)
        found = {k: v for k, v in match.groupdict().items() if v is not None}
        measured: dict[str, Value] = {"kind": kind, **{f"device_{k}": v for k, v in found.items()}}
        both = {"a", "b"} <= set(found)
        statement = (f"tensors on {found['a']} and {found['b']} meet in one operation" if both
                     else f"a tensor is on the wrong device ({short(incident.text)})")
        yield report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured)


def _usable(pattern: re.Pattern[str], message: str) -> re.Match[str] | None:
    """A match that names two devices: "Input type (torch.FloatTensor) and weight type" may be about dtypes."""
    match = pattern.search(message)
    if match is None or "weight type" not in match[0]:
        return match
    return match if ("cuda" in match["a"]) != ("cuda" in match["b"]) else None
