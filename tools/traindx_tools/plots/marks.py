"""Findings as marks on the axis: one row a rule, the earliest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindx_tools.finding import Finding, Severity
from traindx_tools.plots.axis import Axis

MOST_ROWS = 7
_MOST_SPANS = 40


@dataclass(frozen=True)
class Mark:
    """A rule's row: its title, how bad it is, and where on the axis it was seen."""

    rule: str
    title: str
    severity: Severity
    spans: tuple[tuple[float, float], ...]

    @property
    def start(self) -> float:
        return min(s for s, _ in self.spans)


@dataclass(frozen=True)
class Marks:
    """The rows that are drawn, and one line of text for each finding that lies nowhere on the axis."""

    rows: tuple[Mark, ...]
    elsewhere: tuple[str, ...]
    more: int = 0


def marks_of(findings: Sequence[Finding], axis: Axis) -> Marks:
    """Remarks (severity "info") have no row: its title is that of a fault, which a remark just does not say."""
    faults = [f for f in findings if f.severity is not Severity.INFO]
    spans: dict[str, list[tuple[float, float]]] = {}
    first: dict[str, Finding] = {}
    elsewhere: list[str] = []
    for f in faults:
        span = axis.span(f.where)
        if span is None:
            elsewhere.append(f"{f.rule} {f.title} ({_place(f)})")
            continue
        spans.setdefault(f.rule, []).append((min(span), max(span)))
        known = first.setdefault(f.rule, f)
        first[f.rule] = max(known, f, key=lambda g: g.severity.rank)
    rows = [Mark(rule, first[rule].title, first[rule].severity, tuple(s[:_MOST_SPANS])) for rule, s in spans.items()]
    worst = sorted(rows, key=lambda m: (-m.severity.rank, m.start))[:MOST_ROWS]
    drawn = tuple(sorted(worst, key=lambda m: (m.start, -m.severity.rank)))
    return Marks(drawn, tuple(dict.fromkeys(elsewhere)), len(rows) - len(drawn))


def _place(finding: Finding) -> str:
    """The place without the folders: a picture has no room for them."""
    where = finding.where
    return str(replace(where, file=where.file.replace("\\", "/").rsplit("/", 1)[-1] if where.file else None))
