"""What `traindx diagnose --note` writes to a run: the verdict and the findings that matter, short."""

from __future__ import annotations

from traindx.diagnose import Report
from traindx_tools.finding import Severity

MOST = 12
"""Findings of one note."""
LENGTH = 300
"""Characters of one statement."""


def note_of(report: Report) -> tuple[str, str]:
    """The verdict in one word (the cause's id, or the status) and the text of the note."""
    first = report.seen.verdict.hypotheses[0] if report.status == "diagnosis_complete" else None
    verdict = first.mode.id if first else report.status
    head = f"traindx: {first.mode.id} ({first.confidence:.0%}): {first.mode.title}" if first else (
        f"traindx: {report.status.replace('_', ' ')}")
    worth = sorted((f for f in report.seen.findings if f.severity.rank >= Severity.MEDIUM.rank),
                   key=lambda f: -f.severity.rank)
    lines = [f"- {f.rule} ({f.severity.value}): {' '.join(f.statement.split())[:LENGTH]}" for f in worth[:MOST]]
    more = [f"- and {len(worth) - MOST} more"] if len(worth) > MOST else []
    return verdict, "\n".join([head, *lines, *more])
