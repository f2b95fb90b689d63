"""The first answer of `diagnose_run`: facts in the order of time, then suspects with how often such are right.

A fix is only told where the cause is proven (status diagnosis_complete), and last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traindx_tools.catalog.trust import how_often_right
from traindx_tools.triage import timeline

if TYPE_CHECKING:
    from traindx.diagnose import Report
    from traindx_tools.finding import Finding
    from traindx_tools.weighing import Weighed

PROVEN = "diagnosis_complete"
FACTS = ("status", "scope", "set_aside", "judged_run", "runs", "symptom_answer", "timeline", "findings", "comparison",
         "analysis_artifacts")
"""What was seen, in the order in which it is told."""
GUESSES = ("first_lead", "reason", "hypotheses", "root_causes", "quick_fixes", "next_checks")
"""What is made of it."""
_CAUSE = ("failure_mode", "issue", "confidence", "severity", "location", "evidence", "fix")
_MOST_MOMENTS = 12


def facts_first(result: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields, facts before guesses; without proposals of changes where no cause is proven."""
    told = dict(result)
    if result["status"] != PROVEN and "quick_fixes" in told:
        told["quick_fixes"] = []
    known = {k: told[k] for k in (*FACTS, *GUESSES) if k in told}
    return {**known, **{k: v for k, v in told.items() if k not in known}}


def full(report: Report) -> dict[str, Any]:
    """The result of `traindx diagnose --json`, facts first, with how often the first lead is right."""
    return facts_first({**report.to_json(), "first_lead": how_often_right(report.seen.verdict.hypotheses)})


def brief(report: Report) -> dict[str, Any]:
    """What a reader needs first: the course of things, suspects with evidence, a proven cause with its fix."""
    result = report.to_json()
    made: dict[str, Any] = {
        "status": result["status"],
        **{k: result[k] for k in ("scope", "set_aside", "judged_run", "symptom_answer") if k in result},
        **({"runs": [_without_findings(r) for r in result["runs"]]} if "runs" in result else {}),
        "timeline": [_moment(report, f) for f in timeline(report.seen.findings)[:_MOST_MOMENTS]],
        "findings": [f"[{report.exhibits[f]}] {f.severity.value}, {f.strength.value}: {f.statement} "
                     f"({report.places.describe(f)})" for f in report.seen.findings],
        **({"comparison": _comparison(result["comparison"])} if "comparison" in result else {}),
        "first_lead": how_often_right(report.seen.verdict.hypotheses),
        "reason": report.seen.verdict.reason if not result["root_causes"] else "see root_causes",
        "hypotheses": _suspects(report),
        "root_causes": [{k: cause[k] for k in _CAUSE} for cause in result["root_causes"]],
        "next_checks": result["next_checks"],
    }
    return facts_first(made)


def _moment(report: Report, finding: Finding) -> str:
    step, unit = finding.where.step, finding.where.unit
    when = f"{unit} {step:g}" if step is not None else "no time"
    return f"{when}: [{report.exhibits[finding]}] {finding.title}"


def _suspects(report: Report) -> list[dict[str, Any]]:
    return [{"failure_mode": said.failure_mode, "title": found.mode.title, "confidence": said.confidence,
             "location": said.location, "for": [_weight(report, w) for w in found.speaks_for],
             "against": [_weight(report, w) for w in found.speaks_against]}
            for found, said in zip(report.seen.verdict.hypotheses, report.hypotheses, strict=True)
            if found.speaks_for]


def _weight(report: Report, weighed: Weighed) -> str:
    return (f"{report.exhibits[weighed.finding]} {weighed.weight:+.1f} ({weighed.strength.value}, "
            f"{weighed.bearing.value})")


def _without_findings(run: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in run.items() if k != "findings"}


def _comparison(comparison: dict[str, Any]) -> dict[str, Any]:
    """Where the runs part and what differs, as sentences."""
    ranked = comparison["ranked"][:12]
    return {"parted": [m["statement"] for m in comparison["metrics"] if m["step"] is not None][:8],
            "differences": [f"{e['kind']}: {e['statement']} ({'; '.join(e['why'])})" for e in ranked],
            "events": [e["statement"] for e in comparison["events"]],
            "remarks": comparison["remarks"]}
