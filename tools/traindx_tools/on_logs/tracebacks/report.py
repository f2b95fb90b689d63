"""How a rule of this room words its finding: the place, what is only the place where it surfaced, what was survived."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.on_logs.run import Frame
from traindx_tools.on_logs.tracebacks.incidents import SURVIVED_RECORDS, Incident
from traindx_tools.rules import Rule

_LONGEST = 500


def report(
    rule: Rule,
    incident: Incident,
    statement: str,
    *,
    bearing: Bearing,
    severity: Severity | None = None,
    measured: Mapping[str, Value] | None = None,
    frame: Frame | None = None,
    surfaced: str = "",
    counted: bool = True,
) -> Finding:
    """A finding for an incident.

    `statement` is a clause with the numbers of the message; the place is added. `surfaced` says why the place may not
    be where the fault is ("CUDA reports errors later than they happen"). `frame` overrides the user's frame. An error
    that the run survived is LOW and only a pattern. `counted` false leaves out how often it was written.
    """
    frame = frame or incident.frame
    survived = incident.survived
    parts = [statement, _place(frame, surfaced), _repeats(incident) if counted else "", _survived(incident)]
    if survived:
        severity, bearing = min(Severity.LOW, severity or rule.severity, key=lambda s: s.rank), Bearing.COMPANION
    return rule.finding(
        "".join(parts),
        _where(incident, frame),
        incident.printed.source,
        bearing=bearing,
        severity=severity,
        measured={**_measured(incident, frame, surfaced), **(measured or {})},
    )


def short(text: str, length: int = 160) -> str:
    """The first line of a message, bounded, fit for a sentence."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    first = re.sub(r"\s+", " ", first)
    return first if len(first) <= length else first[: length - 3] + "..."


def _place(frame: Frame | None, surfaced: str) -> str:
    if frame is None:
        return f"; {surfaced}" if surfaced else ""
    where = f" at {PurePosixPath(frame.place.replace(chr(92), '/')).name}"
    if frame.function and frame.function != "<module>":
        where += f" in {frame.function}"
    return where + (f"; that line is only where it surfaced: {surfaced}" if surfaced else "")


def _repeats(incident: Incident) -> str:
    ranks = incident.ranks
    if len(ranks) > 1:
        return f" (on ranks {', '.join(map(str, ranks[:8]))}{' ...' if len(ranks) > 8 else ''})"
    if len(ranks) == 1:
        return f" (on rank {ranks[0]})"
    return f" ({incident.count} times)" if incident.count > 1 else ""


def _survived(incident: Incident) -> str:
    if not incident.survived:
        return ""
    if incident.printed.kind == "warning":
        return ""
    after = incident.records_after
    if after is not None and after < SURVIVED_RECORDS:
        return f"; {incident.records_between} records lie between the first and the last, so it was caught"
    went_on = f"{after} further records" if after is not None else f"{incident.printed.lines_after} further lines"
    return f"; the run went on for {went_on}, so it was caught"


def _where(incident: Incident, frame: Frame | None) -> Location:
    event = incident.printed
    rank = event.rank
    if frame is None:
        return Location(file=event.source, line=event.line, end_line=event.end_line, step=incident.step,
                        unit=incident.unit, rank=rank, quote=incident.text[:200])
    return Location(file=frame.file, line=frame.line, cell=frame.cell, step=incident.step, unit=incident.unit,
                    rank=rank, quote=frame.code[:200] or incident.text[:200])


def _measured(incident: Incident, frame: Frame | None, surfaced: str) -> dict[str, Value]:
    known: dict[str, Value] = {
        "type": incident.error.type,
        "message": incident.text[:_LONGEST],
        "log_line": incident.printed.line,
        "count": incident.count,
        "survived": incident.survived,
        "surfaced_only": bool(surfaced),
    }
    if frame is not None:
        known.update(file=frame.file, line=frame.line, function=frame.function, code=frame.code)
        if frame.cell is not None:
            known["cell"] = frame.cell
    if incident.ranks:
        known["ranks"] = incident.ranks
    if incident.records_after is not None:
        known["records_after"] = incident.records_after
    if incident.companions:
        known["companions"] = tuple(dict.fromkeys(c.type for c in incident.companions))
    return known
