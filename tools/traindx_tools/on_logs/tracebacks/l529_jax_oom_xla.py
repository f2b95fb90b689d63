"""XLA failed: the device's memory is exhausted, or the compiler or runtime gave up.

RESOURCE_EXHAUSTED names the size that did not fit. JAX preallocates 75 % of a GPU by default, so a second process on
the same device starts with little; "Allocator ... ran out of memory" before it shows what was in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.memory_numbers import gib, readable
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule, Threshold

PRIORITY = 25
TOGETHER = True
ABSURD = 1024.0

RULE = Rule(
    id="L529",
    name="jax-oom-xla",
    title="XLA ran out of memory or failed",
    severity=Severity.CRITICAL,
    sees="RESOURCE_EXHAUSTED with its size, INTERNAL and INVALID_ARGUMENT errors of XLA, failed checks.",
    matters="The run is over.",
    alike=("torch's allocator on the same GPU (L508).", "A shape that is wrong by a factor: then the size is absurd."),
    confirm=("jax.profiler.save_device_memory_profile('memory.prof'), or XLA_PYTHON_CLIENT_PREALLOCATE=false and "
             "nvidia-smi.",
             "jax.jit(f).lower(*args).compile().memory_analysis() for the step function.",
             "Donate the state: jax.jit(step, donate_argnums=0)."),
    thresholds={"absurd": Threshold(ABSURD, "GiB", "no single device has 1 TiB: a shape is wrong")},
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("memory", r"RESOURCE_EXHAUSTED|ran out of memory trying to allocate|Ran out of memory in memory space",
     "the device's memory is exhausted"),
    ("internal", r"(?:XlaRuntimeError|JaxRuntimeError)?:? ?INTERNAL: ", "XLA failed internally"),
    ("invalid-argument", r"INVALID_ARGUMENT: ", "XLA refused an argument"),
    ("backend", r"Unable to initialize backend|FAILED_PRECONDITION: |UNAVAILABLE: |UNKNOWN: .{0,80}CUDA",
     "the device's backend is not available"),
    ("compiler", r"Check failed: |UNIMPLEMENTED: |ptxas|LLVM ERROR", "the compiler failed"),
))
_XLA = re.compile(r"XlaRuntimeError|JaxRuntimeError|jaxlib|xla|XLA|" + fatal_lines.XLA_FATAL)
_SIZE = re.compile(r"(?:allocat(?:e|ing)|[Uu]sed|requested) ([\d.]+) ?([KMGTP]i?B|bytes|[KMGTP])\b")
_LIMIT = re.compile(r"(?:of|limit) ([\d.]+) ?([KMGTP]i?B?) (?:hbm|vmem|memory)")


def claims(event: ErrorEvent) -> bool:
    """XLA's statuses; RESOURCE_EXHAUSTED from anywhere."""
    if event.kind == "warning":
        return False
    if "RESOURCE_EXHAUSTED" in event.message or "ran out of memory trying to allocate" in event.message:
        return True
    told = f"{event.type} {event.message[:2000]}"
    return _XLA.search(told) is not None and any(p.search(f"{event.type}: {event.message}") for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        text = f"{incident.error.type}: {incident.text}"
        kind, words = next((k, w) for k, p, w in _KINDS if p.search(text))
        measured: dict[str, Value] = {"kind": kind}
        size, limit = _SIZE.search(text), _LIMIT.search(text)
        if kind == "memory" and size is not None:
            tried = gib(size)
            measured["tried_gib"] = round(tried, 3)
            words += f": {readable(tried)} did not fit"
            if tried >= ABSURD:
                measured["kind"] = "memory-absurd"
                words += ", which no device has, so a shape is wrong"
        if limit is not None:
            measured["limit_gib"] = round(gib(limit), 3)
        if kind != "memory":
            words += f" ({short(incident.text)})"
        yield report(RULE, incident, words, bearing=Bearing.SIGN, measured=measured)
