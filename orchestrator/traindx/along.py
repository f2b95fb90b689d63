"""Events that go along with anomalies, as the faces show them: what is only a remark, and what was ruled out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traindx_tools.finding import Finding, Severity

GOES_ALONG = frozenset({"L801", "L803"})
"""The rules of events that go along with anomalies."""


@dataclass(frozen=True)
class Along:
    """`remark`: the sentence, "" where the timeline tells it. `event`: its name. `ruled_out`: each with the reason."""

    event: str
    remark: str
    ruled_out: tuple[str, ...] = ()


def along_of(findings: Iterable[Finding]) -> tuple[Along, ...]:
    """Each association that has a remark to tell or something that it rules out."""
    told = (_along(f) for f in findings if f.rule in GOES_ALONG)
    return tuple(a for a in told if a.remark or a.ruled_out)


def _along(finding: Finding) -> Along:
    names, reasons = finding.measured.get("ruled_out"), finding.measured.get("ruled_out_why")
    pairs = zip(names, reasons, strict=False) if isinstance(names, tuple) and isinstance(reasons, tuple) else ()
    remark = finding.statement if finding.severity is Severity.INFO else ""
    return Along(str(finding.measured.get("event", "")), remark, tuple(f"{name} ({why})" for name, why in pairs))
