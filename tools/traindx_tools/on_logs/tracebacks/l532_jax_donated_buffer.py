"""JAX was given an array whose memory a call had taken already.

`donate_argnums` hands the memory of an argument to the result. Whoever still holds the array (the old name, a target
network or best state that was assigned and not copied, a state that holds the array twice) meets "Array has been
deleted", or XLA's INVALID_ARGUMENT about a donated buffer. The line is where the array was used; the cause is where a
second name was given to it, or the call that took it.
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
    id="L532",
    name="jax-donated-buffer",
    title="An array is used whose memory was donated",
    severity=Severity.CRITICAL,
    sees="JAX's errors about arrays that have been deleted and about buffers that were donated.",
    matters="The run is over.",
    alike=("An array that was deleted by .delete(), or whose device was reset.", "XLA out of memory (L529)."),
    confirm=("print(jax.tree.leaves(tree)[0].is_deleted()) before the call.",
             "Run without donate_argnums: the error is gone, and more memory is used."),
)

_KINDS = (
    ("twice", re.compile(r"donate the same buffer twice"), "one array stands twice in what is donated"),
    ("same-call", re.compile(r"previously donated in the same call"),
     "an array is donated and handed to the same call by a second name"),
    ("donated", re.compile(r"[Bb]uffer has been deleted or donated|donated buffer|[Bb]uffer (?:was|has been) donated"),
     "an array is used whose memory an earlier call took"),
    ("deleted", re.compile(r"Array has been deleted|DeviceArray has been deleted|[Bb]uffer has been deleted"),
     "an array is used that has been deleted, as donation does"),
)
_SHAPE = re.compile(r"with shape=(\w+\[[\d,]*\])")
_PLACE = re.compile(r"flattened argument (\d+)")


def claims(event: ErrorEvent) -> bool:
    """Errors of deleted and donated arrays."""
    if event.kind == "warning" or "usable" in event.message[:200]:
        return False
    return any(pattern.search(event.message) for _, pattern, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, words = next((k, w) for k, p, w in _KINDS if p.search(incident.text))
        measured: dict[str, Value] = {"kind": kind}
        if shape := _SHAPE.search(incident.text):
            measured["shape"] = shape.group(1)
            words += f" ({shape.group(1)})"
        if place := _PLACE.search(incident.text):
            measured["argument"] = int(place.group(1))
            words += f" (leaf {place.group(1)} of the call's arguments)"
        yield report(RULE, incident, words,
                     bearing=Bearing.SIGN if kind == "deleted" else Bearing.CAUSE, measured=measured,
                     surfaced="" if kind in ("twice", "same-call") else "the array was given away by an earlier call")
