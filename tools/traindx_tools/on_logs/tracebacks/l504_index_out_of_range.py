"""An index out of range, raised on the host: the line and often the index are right.

"index out of range in self" is an embedding whose id is not below its number of rows: a vocabulary that grew, a padding
id of -1, or positions beyond the table. The other forms name index, dimension and size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 50

RULE = Rule(
    id="L504",
    name="index-out-of-range",
    title="An index is out of range",
    severity=Severity.CRITICAL,
    sees="IndexError of Python, NumPy and torch: embeddings, gather, lists, datasets.",
    matters="The run is over; on a GPU the same fault is a device-side assert or a cuBLAS error without a line.",
    alike=("A class label out of range (L520).", "A tokenizer with more tokens than the embedding (L527)."),
    confirm=("Print min and max of the indices just before the line, and the size of what is indexed.",
             "Check special ids (padding, -1, -100, a new token) and the longest sequence against the position table."),
)

_EMBEDDING = re.compile(r"index out of range in self")
_SIZED = re.compile(r"index (?P<index>-?\d+) is out of bounds for (?:dimension|axis) (?P<dim>\d+) with size "
                    r"(?P<size>\d+)")
_RANGE = re.compile(r"(?:list|tuple|string|deque|range object|pop) index out of range|out of range: "
                    r"|Dimension out of range|index \d+ is out of (?:range|bounds)|too many indices"
                    r"|Out of range: index|Index \d+ out of range|Invalid key: \d+ is out of bounds for size \d+")
_POSITION = re.compile(r"(?i)\bpos(?:ition)?(?:al|s)?_?|_pos\b|wpe|\.pe\b")


def claims(event: ErrorEvent) -> bool:
    """IndexError, and torch's RuntimeError for gather and scatter."""
    message = event.message
    return event.kind == "exception" and (
        event.type.endswith("IndexError") or any(p.search(message) for p in (_EMBEDDING, _SIZED))
        or bool(_RANGE.search(message))
    )


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    sized = _SIZED.search(incident.text)
    measured: dict[str, Value] = {"kind": _kind(incident)}
    statement = f"an index is out of range ({short(incident.text)})"
    if sized is not None:
        measured |= {"index": int(sized["index"]), "dimension": int(sized["dim"]), "size": int(sized["size"])}
        statement = f"index {sized['index']} is used on dimension {sized['dim']}, which has {sized['size']} entries"
    elif measured["kind"] == "embedding":
        statement = "an embedding was given an id that is not below its number of rows"
    elif measured["kind"] == "position-embedding":
        statement = "a position embedding was given a position that is not below its number of rows"
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured)


def _kind(incident: Incident) -> str:
    if _EMBEDDING.search(incident.text) or any("embedding" in f.function for f in incident.error.frames):
        frame = incident.frame
        return "position-embedding" if frame and _POSITION.search(frame.code) else "embedding"
    if any(f.function == "__getitem__" and not f.library for f in incident.error.frames):
        return "dataset"
    return "tensor" if "dimension" in incident.text or "axis" in incident.text else "sequence"
