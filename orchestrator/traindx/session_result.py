"""What a caller gets: where a session stands, why, and what to do next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from traindx import documents
from traindx.changed_files import KEPT_BESIDE, UNKNOWN
from traindx.context import DiagnosisResult, RankedHypothesis, RootCause
from traindx.journal import Record, read_journal
from traindx.knowledge import Addition, read_knowledge
from traindx.machine import ACCEPTED, ENDS, Session
from traindx.model import (
    Attempt,
    Budget,
    Decision,
    Diagnosis,
    Evidence,
    Hypothesis,
    Model,
    NeedsData,
    VerificationResult,
)
from traindx.revised import revised
from traindx.session_folder import SessionFolder, events_of, opening_of, replay
from traindx.standing import Status, first_line, standing_of
from traindx.strikes import Ledger, LedgerDamaged
from traindx.typed_commands import workspace_option
from traindx_tools.errors import BadUsage

DOCUMENTS = ("diagnosis.md", "diagnosis.json", "strike_report.md", "root_cause_analysis.md", "retrospective.md",
             "retrospective.json", "report.html", "journal.jsonl")


EXPERIMENT = "X10"
"""Begins the rules of experiments (X101 to X105)."""


class SessionResult(Model):
    """Where a session stands. `folder` holds everything; `digest` is what an approval names."""

    session: str
    folder: str
    workspace: str
    status: Status
    phase: str
    reason: str
    """Why it stands there, in a sentence."""
    next_step: str
    """What the person does next, one thing a line; empty where nothing is left to do."""
    diagnosis: Diagnosis | None = None
    digest: str | None = None
    questions: tuple[str, ...] = ()
    decision: Decision | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    strikes: int = 0
    """Strikes that the diagnosed approach has in this workspace, from this session and earlier ones."""
    needs: NeedsData | None = None
    changed: tuple[str, ...] = ()
    """Files that changed while nothing was allowed to change, or that a revert could not settle; a fix that stands is
    in `standing`."""
    standing: tuple[str, ...] = ()
    """Where the session's fix is in the files, verified or not, as `path:line`."""
    verification: VerificationResult | None = None
    """What the last verification came to (see `verification.VerificationResult`), None before the first."""
    budget: Budget = Budget()
    """What each turn may take."""
    has_verify: bool = False
    """Whether the session has a command that verifies a fix."""
    investigators: tuple[str, ...] = ()
    """Who worked on what is presented: "engine" (instruments and triage), "lead", specialists, "adversary"; () while
    nothing is."""
    degraded: tuple[str, ...] = ()
    """Who should have worked on it and did not, each with its state and why; () where nothing is missing."""
    tests: tuple[str, ...] = ()
    """Commands of the experiments that would test the cause which a person named when they last rejected or revised."""
    revised: str = ""
    """After a revision: what the person said and whether the diagnosis is another one since; else ""."""
    experiments: tuple[Evidence, ...] = ()
    """What the session's experiments came to, undecided ones too."""
    notes: tuple[str, ...] = ()
    documents: dict[str, str] = Field(default_factory=dict)
    """Name to path of the session's documents that exist."""
    offer: tuple[Addition, ...] = ()
    """After success: what could be added to the project's notes with `record_knowledge(..., consent=True)`."""

    def __repr__(self) -> str:
        said = f", {self.diagnosis.failure_mode} at {self.diagnosis.location}" if self.diagnosis is not None else ""
        return f"<SessionResult {self.session}: {self.status}{said}, in {self.folder}>"

    __str__ = __repr__

    @property
    def commands(self) -> tuple[str, ...]:
        """What can be typed next, from any directory; `next_step` says it in words."""
        from traindx.typed_next import next_commands

        return next_commands(self, anywhere=True)

    def _repr_html_(self) -> str:
        from traindx.in_notebook import name_of, of_session

        said = (self.reason, *([self.revised] if self.revised else []))
        return of_session(name_of(self), self.status, said, self.next_step, self.diagnosis, self.attempts)

    def _shown(self) -> tuple[Evidence, ...]:
        """The evidence of the diagnosis, then the experiments that it does not cite."""
        cited = self.diagnosis.evidence if self.diagnosis is not None else ()
        known = {e.id for e in cited}
        return (*cited, *(e for e in self.experiments if e.id not in known))

    def to_diagnosis_result(self) -> DiagnosisResult:
        """The result JSON of the context-package interface."""
        d = self.diagnosis
        status: Literal["diagnosis_complete", "needs_more_data", "healthy"] = (
            "healthy" if self.status == "healthy" else "diagnosis_complete" if d is not None else "needs_more_data")
        return DiagnosisResult(
            status=status,
            root_causes=(_root_cause(d),) if d is not None else (),
            hypotheses=tuple(RankedHypothesis.of(h) for h in self.hypotheses),
            findings=tuple({**e.finding, "id": e.id} for e in self._shown() if e.finding is not None),
            quick_fixes=tuple(f"{f.summary}: {f.where()}" for f in d.options[:1]) if d is not None else (),
            next_checks=self.needs.next_checks if self.needs is not None else (),
            analysis_artifacts=self.documents,
        )


def _root_cause(d: Diagnosis) -> RootCause:
    return RootCause(
        issue=d.root_cause, severity=d.severity,
        evidence=tuple(f"[{e.id}] {e.statement} ({e.place})" for e in d.evidence),
        fix=d.proposed_fix, confidence=d.confidence, failure_mode=d.failure_mode, location=d.location,
        mechanism=d.why_this_happens, will_change=d.will_change, will_not_fix=d.will_not_fix)


def result_of(folder: SessionFolder) -> SessionResult:
    """The result as the journal tells it. Raises FileNotFoundError, JournalDamaged."""
    records = read_journal(folder.journal)
    opening, s = opening_of(records), replay(records)
    status, reason, next_step = standing_of(s, folder, opening, records)
    outside = [r.body["outside_approval"] for r in records if r.kind == "note" and "outside_approval" in r.body]
    moved = [r.body["moved_by_hand"] for r in records if r.kind == "note" and "moved_by_hand" in r.body]
    written = [r.body["verification_wrote"] for r in records if r.kind == "note" and "verification_wrote" in r.body]
    others = () if s.phase in ENDS else _beside(folder)
    tests = [r.body["tests"] for r in records if r.kind == "note" and "tests" in r.body]
    again = revised(events_of(records)) if status == "awaiting_approval" else ""
    shown = s.diagnosis or s.needs or s.healthy
    present = {name: str(folder.path / name) for name in DOCUMENTS if (folder.path / name).is_file()}
    return SessionResult(
        session=s.id, folder=str(folder.path), workspace=str(folder.workspace), status=status, phase=s.phase,
        reason=reason, next_step=_typed(next_step, s, folder.workspace), diagnosis=s.diagnosis,
        digest=s.diagnosis.digest() if s.diagnosis is not None else None,
        questions=s.diagnosis.questions if s.diagnosis is not None else (), decision=s.decision,
        hypotheses=s.hypotheses, attempts=s.attempts, verification=_last_result(s), strikes=_strikes(s, folder),
        needs=s.needs, investigators=shown.investigators if shown is not None else (),
        degraded=shown.degraded if shown is not None else (),
        changed=s.halt.files if s.halt is not None else (), standing=_standing_fix(s),
        has_verify=opening.verify is not None, budget=opening.budget,
        notes=(*_set_aside(folder), *(f"beside it: {said}" for said in others),
               *(f"changed by hand beyond the approved lines: {', '.join(o)}" for o in outside),
               *(f"lines moved by hand, also outside of the approved ones: {', '.join(m)}" for m in moved),
               *(f"the verification wrote: {', '.join(w)}" for w in written),
               *(f"not applied: {first_line(why)}" for why in s.stale if status != "awaiting_approval"),
               *(said for said in s.feedback if said.startswith(ACCEPTED)),
               *(f"changed beside the fix, and kept when it was taken out: {', '.join(r.body[KEPT_BESIDE])}"
                 for r in records if r.kind == "note" and KEPT_BESIDE in r.body), *_unknown(records)),
        documents=present, experiments=tuple(e for e in s.evidence if (e.rule or "").startswith(EXPERIMENT)),
        tests=tuple(tests[-1]) if tests and (status in ("rejected", "needs_more_data") or again) else (),
        revised=again,
        offer=documents.offer(s, read_knowledge(folder.workspace)) if status == "fixed" else ())


def _unknown(records: Sequence[Record]) -> tuple[str, ...]:
    """That changes of a person could not be told, where the record of the files was gone."""
    if not any(r.kind == "note" and UNKNOWN in r.body for r in records):
        return ()
    return ("workspace.json of the session was gone: files other than those of the fix may have changed unnoticed",)


def _beside(folder: SessionFolder) -> tuple[str, ...]:
    """The other sessions of the folder as they stand now: a note of when this one began is soon out of date."""
    from traindx.beside import beside

    return beside(folder)


def _set_aside(folder: SessionFolder) -> tuple[str, ...]:
    """What the project's file keeps from being told in this session, with the reasons."""
    from traindx.project_file import read_project_file
    from traindx_tools.set_aside import in_words

    try:
        return tuple(in_words(a, 0) for a in read_project_file(folder.workspace).ignored)
    except BadUsage as error:  # a session stays readable whatever was written there since
        return (str(error),)


def _typed(next_step: str, s: Session, workspace: Path) -> str:
    """The next step with each command as it works from any directory: it is read elsewhere, and later."""
    told = next_step.replace(f"resume session {s.id}", f"resume it (traindx resume {s.id})")
    where = f" --workspace {shlex.quote(str(Path(workspace).resolve()))}" if workspace_option(workspace) else ""
    return re.sub(rf"traindx \w+ {re.escape(s.id)}", lambda m: m[0] + where, told)


def _strikes(s: Session, folder: SessionFolder) -> int:
    if s.diagnosis is None:
        return s.strike_level
    ledger = Ledger(folder.workspace)
    try:
        return max((len(ledger.strikes(s.diagnosis.approach, f)) for f in s.diagnosis.options), default=0)
    except LedgerDamaged:  # a session must stay readable; any fix is refused with this error anyway
        return s.strike_level


def _last_result(s: Session) -> VerificationResult | None:
    return next((a.verification.result for a in reversed(s.attempts) if a.verification is not None), None)


def _standing_fix(s: Session) -> tuple[str, ...]:
    """Places of the last fix, where it was not taken back."""
    last = s.attempts[-1] if s.attempts else None
    return () if last is None or last.reverted else last.where
