"""What a caller gets: where a session stands, why, and what to do next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from traindx import documents
from traindx.changed_files import KEPT_BESIDE, MEANWHILE, UNKNOWN, changed_files
from traindx.context import DiagnosisResult, RankedHypothesis, RootCause
from traindx.hindrances import COULD_NOT
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
    Verification,
    VerificationResult,
)
from traindx.notices import PHASE_WORDS
from traindx.revised import revised
from traindx.session_folder import Opening, SessionFolder, events_of, opening_of, replay
from traindx.strike_levels import level
from traindx.strikes import Ledger, LedgerDamaged
from traindx.turn import CALLBACK_FAILED
from traindx.typed_commands import more_than, workspace_option
from traindx_tools.errors import BadUsage

Status = Literal["fixed", "healthy", "needs_more_data", "awaiting_approval", "awaiting_edit", "awaiting_verification",
                 "effect_not_shown", "not_executed", "three_strikes", "rejected", "halted", "stopped", "interrupted",
                 "running"]

DOCUMENTS = ("diagnosis.md", "diagnosis.json", "strike_report.md", "root_cause_analysis.md", "retrospective.md",
             "retrospective.json", "report.html", "journal.jsonl")


EXPERIMENT = "X10"
NOTHING_APPLIED = "nothing was applied"
"""Begins the reason where a diagnosis waits again, as files changed since the one that was approved."""
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
        from traindx.in_notebook import of_session

        said = (self.reason, *([self.revised] if self.revised else []))
        return of_session(self.status, said, self.next_step, self.diagnosis, self.attempts)

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
    status, reason, next_step = _standing(s, folder, opening)
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


Standing = tuple[Status, str, str]


def _standing(s: Session, folder: SessionFolder, opening: Opening) -> Standing:
    if s.interrupted is not None and s.interrupted.startswith(COULD_NOT):
        return _hindered(s, s.interrupted)
    if s.interrupted is not None:
        return "interrupted", _with_what_stands(s, s.interrupted), _after_interruption(s, opening.budget)
    if s.phase == "verify" and not (verifies_by_itself(opening) and s.attempts[-1].verification is None):
        return _verify(s, opening.verify is not None)
    standing = _STANDINGS.get(s.phase, _running)(s)
    return _left_alone(s, standing) if standing[0] == "running" and not folder.is_driven else standing


def verifies_by_itself(opening: Opening) -> bool:
    """Whether an applied fix is verified without anybody doing more: a command, and the consent to run it."""
    return opening.allow_run and opening.verify is not None and opening.verify.command is not None


def _left_alone(s: Session, standing: Standing) -> Standing:
    """The journal does not end, and no live process holds the session: it was killed, or nobody resumed it yet."""
    _, reason, _ = standing
    return ("interrupted", _with_what_stands(s, f"{reason}, and no process drives the session any more: it was killed, "
                                                "or nobody has gone on with it yet"), _after_interruption(s))


def _with_what_stands(s: Session, reason: str) -> str:
    """The reason, with what of the workspace stands changed."""
    stands = changed_files(s)
    return f"{reason.rstrip('.')}; {stands_changed(stands)}" if stands else reason


def _standing_fix(s: Session) -> tuple[str, ...]:
    """Places of the last fix, where it was not taken back."""
    last = s.attempts[-1] if s.attempts else None
    return () if last is None or last.reverted else last.where


def stands_changed(places: tuple[str, ...]) -> str:
    """In words, for a person whose session stopped meanwhile."""
    return f"the fix stands in {', '.join(places)} and is not verified"


def _hindered(s: Session, said: str) -> Standing:
    """The machine kept the verification from being made; the fix stays in place and waits for it."""
    todo = said[len(COULD_NOT):].rpartition(": ")[2].rstrip(".")
    return ("awaiting_verification", f"{said}. The fix stays in place",
            f"{todo}, then traindx resume {s.id}: it verifies again")


def _after_interruption(s: Session, budget: Budget | None = None) -> str:
    """What to do first, where the reason is the caller's own code; its error is named."""
    if s.interrupted is not None and s.interrupted.startswith(CALLBACK_FAILED):
        error = s.interrupted[len(CALLBACK_FAILED):].strip(": ")
        return (f"repair the approval callback ({error}) and resume session {s.id}, or decide without it: "
                f"traindx approve {s.id} --option A (or reject, revise)")
    more = more_than(s.interrupted or "", budget) if budget is not None else ""
    if more:
        return f"give the next turn more: traindx resume {s.id}{more}"
    undo = s.phase == "verify" and changed_files(s)
    back = f"; traindx resume {s.id} --undo takes the change back, which is no strike" if undo else ""
    return f"resume session {s.id}{back}"


def _running(s: Session) -> Standing:
    return "running", PHASE_WORDS[s.phase], f"resume session {s.id} if no process drives it"


WAITS = "a diagnosis waits for your decision"


def _gate(s: Session) -> Standing:
    first = s.diagnosis.options[0].option if s.diagnosis is not None and s.diagnosis.options else "A"
    stale = next((f"{NOTHING_APPLIED}: {first_line(why)}. It was looked at again; " for why in s.stale), "")
    return ("awaiting_approval", f"{stale}{WAITS}{_cause(s)}",
            f"read and decide on a page: traindx review {s.id}; or read the diagnosis here: traindx show {s.id}, "
            f"then: traindx approve {s.id} --option {first} (or reject, revise)")


def _cause(s: Session) -> str:
    """The cause that waits, for one who was sent the reason alone."""
    d = s.diagnosis
    if d is None:
        return ""
    where = f"{d.location}, " if d.location else ""
    return f": {(d.claim or d.root_cause).rstrip('.')} ({where}{100 * d.confidence:.0f} % sure)"


def first_line(text: str) -> str:
    """What a reason says before it shows lines."""
    return text.split("\n", 1)[0].rstrip(".: ")


def _fix(s: Session) -> Standing:
    fix = s.diagnosis.option(s.decision.option) if s.diagnosis and s.decision and s.decision.option else None
    if fix is None or not fix.instructions:
        return "running", "the approved fix is not applied yet", f"resume session {s.id}"
    told = [f"{i.where}: {i.text}" for i in fix.instructions]
    book = next((i.path for i in fix.instructions if i.path.endswith(".ipynb")), None)
    save = (f"edit that cell of {book}, save the notebook, then traindx resume {s.id}: it goes on from your change"
            if book else f"edit it, save, then traindx resume {s.id}: it goes on from your change")
    return ("awaiting_edit", f"option {fix.option} is approved and waits for you: it is a change that a person makes, "
            "and none was made when the session last looked",
            "\n".join([*told, save]))


def _last_result(s: Session) -> VerificationResult | None:
    return next((a.verification.result for a in reversed(s.attempts) if a.verification is not None), None)


def _undecided(s: Session, seen: Verification) -> Standing:
    """The command passed and shows nothing of the fix: a person says what it means, or gives a command that does."""
    status: Status = "not_executed" if seen.result == "not_executed" else "effect_not_shown"
    kept = "The fix stays in place; it is neither verified nor a strike"
    return (status, f"{'; '.join(seen.reasons).rstrip('.')}. {kept}",
            f"give a command that trains with the change and prints what should move (traindx resume {s.id} --verify "
            "CMD), or look yourself and say whether it helped (--passed, --failed: --failed takes it back and "
            "counts a strike; --undo takes it back and counts none)")


def _verify(s: Session, has_verify: bool) -> Standing:
    seen = s.attempts[-1].verification if s.attempts else None
    if seen is not None:
        return _undecided(s, seen)
    todo = ("agree that it is run (--run, allow_run=True)" if has_verify else "give a verification command")
    return ("awaiting_verification", "the fix is applied and not verified yet",
            f"{todo} and resume session {s.id}, or run it yourself and confirm the fix")


def _halted(s: Session) -> Standing:
    halt = s.halt
    assert halt is not None, "the phase is halted because of a halt"
    if halt.halt == "three-strikes":
        return ("three_strikes", f"{halt.reason}. {level(3).rule}",
                "decide: try a fundamentally different approach, or stop (strike_report.md says what was learned)")
    if halt.halt == "rejected":
        return "rejected", halt.reason, f"resume session {s.id} to look for another cause"
    solved = ("; where that fix is all that was wanted, nothing is left to do here" if MEANWHILE in halt.reason else "")
    todo = (f"put these files back, or resume with the changes accepted as yours{solved}"
            if halt.halt == "workspace-changed"
            else "put the old lines back by hand, then resume with the changes accepted")
    back = f"; traindx resume {s.id} --undo takes the fix out" if changed_files(s) else ""
    return "halted", _with_what_stands(s, halt.reason), f"{todo}{back}"


def _done(s: Session) -> Standing:
    last = s.attempts[-1] if s.attempts else None
    if last is not None and last.verification is not None and last.verification.passed:
        return ("fixed", f"{last.summary.rstrip('.')}: verified ({'; '.join(last.verification.reasons)})",
                "nothing is left to do; to keep what was learned for the next session here: "
                f"traindx resume {s.id} --remember")
    return ("stopped", "stopped after three strikes",
            f"traindx show {s.id} says what the failed fixes taught; traindx debug begins anew")


def _needs_data(s: Session) -> Standing:
    needs = s.needs or NeedsData(reason="more data is needed")
    return "needs_more_data", needs.reason, "\n".join((*needs.next_checks, *needs.artifacts, *needs.questions))


def _healthy(s: Session) -> Standing:
    return "healthy", s.healthy.reason if s.healthy is not None else "nothing is wrong", ""


_STANDINGS: dict[str, Callable[[Session], Standing]] = {
    "gate": _gate, "fix": _fix, "halted": _halted, "done": _done, "needs_data": _needs_data, "healthy": _healthy,
}


