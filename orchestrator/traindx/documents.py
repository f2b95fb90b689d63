"""The documents of a session: what stands in its folder for a person or another program to read.

All are made from the session alone and written whole, so that writing them again changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

from traindx.durable import write_state
from traindx.knowledge import CONSTRAINTS, FIX_PATTERNS, MEMORY, Addition, Knowledge, next_number
from traindx.machine import Session
from traindx.render import (
    render_diagnosis,
    render_retrospective,
    render_root_cause_analysis,
    render_strike_report,
)
from traindx.strikes import Strike


def write_diagnosis(session: Session, folder: Path) -> tuple[str, ...]:
    """diagnosis.md and diagnosis.json, with the digest that an approval names."""
    diagnosis = session.diagnosis
    if diagnosis is None:
        return ()
    shown = {"digest": diagnosis.digest(), **diagnosis.to_json(), "questions": list(diagnosis.questions)}
    return _write(folder, {"diagnosis.md": render_diagnosis(diagnosis),
                           "diagnosis.json": json.dumps(shown, indent=2, ensure_ascii=False) + "\n"})


def write_strike_report(session: Session, folder: Path, earlier: tuple[Strike, ...]) -> tuple[str, ...]:
    """strike_report.md: what the failed fixes showed, those of earlier sessions too, and the question that follows."""
    return _write(folder, {"strike_report.md": render_strike_report(session, earlier=earlier)})


def write_analysis(session: Session, folder: Path, retrospective: dict[str, object]) -> tuple[str, ...]:
    """root_cause_analysis.md, retrospective.md and retrospective.json."""
    return _write(folder, {
        "root_cause_analysis.md": render_root_cause_analysis(session),
        "retrospective.md": render_retrospective(session),
        "retrospective.json": json.dumps(retrospective, indent=2, ensure_ascii=False) + "\n",
    })


def _write(folder: Path, texts: dict[str, str]) -> tuple[str, ...]:
    for name, text in texts.items():
        write_state(folder / name, text.encode("utf-8"))
    return tuple(texts)


def retrospective(session: Session, seconds: float, seconds_to_cause: float) -> dict[str, object]:
    """How the session went, in numbers: what makes debugging better over time is what is counted."""
    failed = [a for a in session.attempts if a.verification is not None and a.verification.failed]
    last = session.attempts[-1].verification if session.attempts else None
    d = session.diagnosis
    return {
        "session": session.id,
        "failure_mode": d.failure_mode if d else None,
        "component": d.component if d else None,
        "seconds_to_root_cause": round(seconds_to_cause, 1),
        "seconds": round(seconds, 1),
        "fix_iterations": len(session.attempts),
        "did_not_work": [{"summary": a.summary, "why": list(a.verification.reasons) if a.verification else [],
                          "result": a.verification.result if a.verification else None,
                          "own_error": a.verification.own_error if a.verification else ""}
                         for a in failed],
        "worked": next((a.summary for a in reversed(session.attempts)
                        if a.verification is not None and a.verification.passed), None),
        "result": last.result if last else None,
        "compared": list(last.compared) if last else [],
        "regressions": list(last.regressions) if last else [],
        "steps_without_recurrence": last.steps_without_recurrence if last else None,
        "monitor": [f.metric for f in d.options if f.metric] if d else [],
        "regression_test": "turn the verification into a test of the project: the fault must not come back unseen",
    }


def offer(session: Session, knowledge: Knowledge) -> tuple[Addition, ...]:
    """What could be added to the project's notes; nothing is written until the user agrees."""
    if session.diagnosis is None or session.decision is None:
        return ()
    text = render_retrospective(session)
    d = session.diagnosis
    fix = d.option(session.decision.option) if session.decision.option else None
    number = next_number(knowledge.constraints)
    rule = f"{number}. {_line(d.component)}: avoid `{d.failure_mode}`. {_line(d.root_cause)}"
    fixed_by = _line(fix.summary if fix else d.proposed_fix).rstrip(".")
    summary = f"- {_line(d.root_cause)} Fixed by: {fixed_by}. Session {session.id}."
    return (Addition(path=FIX_PATTERNS, text=text), Addition(path=MEMORY, text=summary),
            Addition(path=CONSTRAINTS, text=rule))


def _line(text: str) -> str:
    from traindx import safe_text

    return safe_text.inline(text, 400)
