"""What specialists reported in a session: kept as they said it, and checked anew whenever it is read.

A report comes while the lead's conversation goes on. Its sender is told at once what of it stands, by the ids under
which it can be cited.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.durable import StateNotWritable
from traindx.investigators.claude_code.answers import Report, Row, read
from traindx.investigators.claude_code.checking import Checker, Dropped, Proven
from traindx.investigators.claude_code.conversation import FOLDER
from traindx.investigators.claude_code.redaction import redacted_json
from traindx.safe_text import block, line
from traindx_tools import unlinked

NAME = "reports.jsonl"
READ_AT_MOST = 200
"""Reports of one session."""


@dataclass(frozen=True)
class Work:
    """What one specialist brought, after the check."""

    who: str
    status: str = ""
    """What it says of its own search: found, not_found, needs_data."""
    answer: str = ""
    proven: tuple[Proven, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    rows: tuple[Row, ...] = ()
    unknown: tuple[str, ...] = ()


def parsed(text: str) -> Report | str:
    """The report in a specialist's last message, whatever stands around its JSON object, or why there is none."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        answer = json.loads(text[begin:end + 1]) if begin >= 0 else None
    except ValueError as error:
        return f"its JSON cannot be read: {error}"
    return read(Report, answer) if isinstance(answer, dict) else "it holds no JSON object"


def checked(who: str, report: Report, checker: Checker) -> Work:
    """What of a report stands."""
    proven, dropped = checker.items(who, report.evidence)
    wrong = [(row, checker.row(row)) for row in report.triangulation]
    bad = tuple(Dropped(who, row.finding, why) for row, why in wrong if why is not None)
    rows = tuple(row for row, why in wrong if why is None)
    return Work(who, report.status, report.answer, proven, (*dropped, *bad), rows, report.unknown)


def told(work: Work) -> str:
    """A checked report in lines, for its sender."""
    lines = [f"{work.who} ({work.status}): {line(work.answer, 1500)}"]
    for p in work.proven:
        side = "for" if p.supports else "against"
        lines.append(f"- checked, {side} {p.failure_mode or 'no named mode'}: {line(p.claim, 600)} | {p.place}: "
                     f"{line(p.value, 300)}")
    lines += [f"- dropped: {line(d.claim, 200)} ({line(d.why, 200)})" for d in work.dropped]
    lines += [f"- open: {line(u, 300)}" for u in work.unknown]
    return block("\n".join(lines), 12_000)


def keep(scratch: Path, who: str, report: Report, fetched: Iterable[str] = ()) -> None:
    """Remember a report. Raises StateNotWritable."""
    path = scratch / FOLDER / NAME
    entry = redacted_json({"who": who, "report": report.model_dump(mode="json"), "fetched": list(fetched)}, 20_000)
    try:
        unlinked.append(path, json.dumps(entry) + "\n")
    except OSError as error:
        raise StateNotWritable(path, error) from error


def kept(scratch: Path) -> tuple[tuple[str, Report], ...]:
    """The reports of a session, the same one once; a damaged line is passed over."""
    try:
        rows = (scratch / FOLDER / NAME).read_text(encoding="ascii").splitlines()
    except OSError:
        return ()
    made: dict[str, tuple[str, Report]] = {}
    for row in rows[-READ_AT_MOST:]:
        entry = _entry(row)
        report = read(Report, entry["report"]) if entry is not None else ""
        if entry is not None and isinstance(report, Report):
            made.setdefault(row, (str(entry["who"]), report))
    return tuple(made.values())


def fetched(scratch: Path) -> frozenset[str]:
    """Addresses that were fetched while reports came."""
    try:
        rows = (scratch / FOLDER / NAME).read_text(encoding="ascii").splitlines()
    except OSError:
        return frozenset()
    return frozenset(str(url) for row in rows for entry in [_entry(row)] if entry is not None
                     for url in entry.get("fetched", ()))


def _entry(row: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(row)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("report"), dict) else None
