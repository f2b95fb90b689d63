"""The triangulation table: what is documented beside what stands in this code. Found in both ranks above found in one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traindx.investigators.claude_code.checking import place_of
from traindx.investigators.claude_code.reports import Work
from traindx.safe_text import inline

IMPACTS = ("critical", "high", "medium", "low")


@dataclass(frozen=True)
class Line:
    """One row: impact is critical (triggers the failure), high (will fail at scale), medium or low."""

    finding: str
    location: str
    match: str
    impact: str
    source: str
    who: str

    @property
    def both(self) -> bool:
        """In literature and in this code."""
        return bool(self.source and self.location)


def table(works: Iterable[Work]) -> tuple[Line, ...]:
    """All rows, the most urgent first: found in both, then by impact."""
    known = tuple(works)
    code = {p.place: p for w in known for p in w.proven if p.kind == "line" and p.supports}
    rows, used = [], set()
    for work in known:
        for row in work.rows:
            place = place_of(row.location or "")
            where = f"{place[0]}:{place[1]}" if place else ""
            used.add(where)
            rows.append(Line(row.finding, where, row.match, row.impact, row.url, work.who))
    for place_text, proven in code.items():
        if place_text not in used:
            rows.append(Line(proven.claim, place_text, "code only", "medium", "", proven.who))
    return tuple(sorted(rows, key=lambda r: (not r.both, IMPACTS.index(r.impact), r.finding, r.location)))


def markdown(rows: tuple[Line, ...]) -> str:
    """The table as Markdown; texts of models are quoted on one line."""
    head = ["| Priority | Finding | Code | Match | Impact | Source | By |", "|---|---|---|---|---|---|---|"]
    cells = [[str(n), r.finding, r.location or "-", r.match, r.impact, r.source or "-", r.who]
             for n, r in enumerate(rows, 1)]
    return "\n".join([*head, *("| " + " | ".join(inline(c, 300).replace("|", "\\|") for c in row) + " |"
                               for row in cells)]) + "\n"
