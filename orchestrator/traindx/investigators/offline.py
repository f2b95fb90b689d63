"""The investigator that needs no model, no key and no network: the instruments, triage, and nothing else.

It is deterministic: the same artifacts give the same diagnosis. After a strike it reads the output of the failed
verification as well, and a failure mode whose fix did not help is not proposed again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx import failed_before, next_steps, proposal
from traindx.changed_files import MEANWHILE
from traindx.diagnose import Report, diagnose
from traindx.handed_over import hand_over, missing_in_words
from traindx.in_this_run import this_run
from traindx.investigators import steering
from traindx.investigators.base import ENGINE, UNCHALLENGED, Case, Conclusion, Gathered, Hypotheses
from traindx.investigators.observed_run import lacked, with_observed_run
from traindx.model import Diagnosis, Evidence, Healthy, NeedsData, Symptom
from traindx.named_places import NamedPlaces
from traindx.safe_text import line
from traindx.strikes import Strike
from traindx.trial_run import TrialRun
from traindx.typed_commands import from_anywhere
from traindx_tools import triage
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Severity
from traindx_tools.symptom import SymptomAnswer

NOBODY = "unchallenged: no adversary could be reached"


@dataclass(frozen=True)
class OfflineInvestigator:
    """Implements `Investigator` with the instruments alone.

    They read once for each state of the case: the steps of a session ask the same of the same files.
    """

    name: str = "offline"
    _seen: dict[str, Report] = field(default_factory=dict, compare=False, repr=False)

    async def characterize(self, case: Case) -> Symptom:
        """Fills "since when" from the earliest anomaly; what the user said is kept."""
        try:
            report = await self.report(case)
        except UnreadableInput:
            said = case.symptom.observed or "nothing that could be judged was handed over"
            return case.symptom.model_copy(update={"observed": said})
        serious = [f for f in report.seen.verdict.anomalies if f.severity.rank >= Severity.MEDIUM.rank]
        since = next((f"{f.where.unit} {f.where.step:g}" for f in serious if f.where.step is not None), "")
        observed = case.symptom.observed or (serious[0].statement if serious else report.seen.verdict.reason)
        expected = case.symptom.expected or "training goes on with finite, improving metrics and ends without an error"
        told_by = case.symptom.told_by if case.symptom.observed else "instruments"
        return case.symptom.model_copy(update={"observed": observed, "expected": expected, "told_by": told_by,
                                               "since_when": case.symptom.since_when or since})

    async def hypothesize(self, case: Case) -> Hypotheses:
        """The ranked hypotheses of triage; quick where the first was seen directly at one place in the code."""
        try:
            report = await self.report(case)
        except UnreadableInput:
            return Hypotheses(())
        first = report.seen.verdict.hypotheses[:1]
        quick = bool(first) and first[0].confidence >= triage.CONFIDENT
        return Hypotheses(report.hypotheses, self._evidence(report, case), quick)

    async def gather(self, case: Case) -> Gathered:
        """What the instruments see now, whatever a failed verification printed, and, with consent, what a run shows."""
        try:
            report = await asyncio.to_thread(self._examined, case, may_run=True)
        except UnreadableInput:
            return Gathered((), ())
        return Gathered(self._evidence(report, case), report.hypotheses)

    async def diagnose(self, case: Case) -> Conclusion:
        """The first cause that is sure enough and was not tried or struck before, with who looked and who did not."""
        return _named(await self._concluded(case), case)

    async def _concluded(self, case: Case) -> Conclusion:
        try:
            report = await self.report(case)
        except UnreadableInput as error:
            return NeedsData(reason=f"Nothing could be judged: {str(error).rstrip('.')}.", artifacts=JUDGEABLE)
        verdict = report.seen.verdict
        if verdict.status == "healthy":
            return Healthy(reason=verdict.reason)
        failed = tried(case)
        for found in verdict.causes:
            if found.mode.id not in failed:
                if proposal.code_place(found, report.places) is None:
                    return _needs_code(found, report)
                exhibits = known_ids(report, case.evidence)
                offer = await asyncio.to_thread(report.offer, found)
                made = proposal.diagnosis(found, report.seen, exhibits, report.places, report.command, offer,
                                          report.names)
                return with_what_was_said(made, case, self._seen[_state(case)].seen.symptom_answers)
        return _needs_data(report, failed, case)

    async def report(self, case: Case) -> Report:
        """What the instruments see of the case, as `traindx diagnose` would."""
        return await asyncio.to_thread(self._examined, case)

    def _examined(self, case: Case, *, may_run: bool = False) -> Report:
        state = _state(case)
        if state not in self._seen:
            self._seen.clear()  # of an earlier state nothing is asked again
            self._seen[state] = _read(case)
        return _judged(self._seen[state], case, may_run=may_run)

    def _evidence(self, report: Report, case: Case) -> tuple[Evidence, ...]:
        exhibits = known_ids(report, case.evidence)
        known = {e.id for e in case.evidence}
        return tuple(proposal.evidence(f, exhibits[f], report.places) for f in report.seen.findings
                     if exhibits[f] not in known)


JUDGEABLE = ("a log, a metrics file or a checkpoint of the run, or the training script",)
"""What to hand over where nothing of what was named could be read."""


def _named(made: Conclusion, case: Case) -> Conclusion:
    """The conclusion with who worked on it.

    An engine that was chosen claims what its arithmetic says: that is measured on runs that nobody challenged. Where
    somebody was asked for who would have challenged the cause, it claims no more than any cause that nobody did.
    """
    who: dict[str, object] = {"investigators": (ENGINE,), "degraded": case.degraded}
    if isinstance(made, Diagnosis) and case.degraded:
        who = {**who, "degraded": (*case.degraded, NOBODY), "confidence": min(made.confidence, UNCHALLENGED)}
    return made.model_copy(update=who)


def _state(case: Case) -> str:
    """All that decides what the instruments read and are told."""
    attempts = [(a.number, a.reverted, a.verification.output if a.verification else "") for a in case.attempts]
    return json.dumps([str(case.scratch), case.artifacts.to_json(), attempts, steering.comments(case.feedback),
                       _told(case), repr(case.asked), case.files], sort_keys=True)


def _told(case: Case) -> str:
    return case.symptom.observed if case.symptom.told_by == "person" else ""


def _read(case: Case) -> Report:
    given = hand_over(case.artifacts, case.workspace, case.scratch / "evidence")
    paths: list[Path] = list(given.paths) or [case.workspace]
    paths += [p for a in case.attempts if a.verification and a.verification.output
              for p in [case.scratch / a.verification.output] if p.is_file() and not a.reverted]
    said = said_in(case)
    paths += [f for s in said for f in s.files if f not in paths]
    words = (_told(case), *(s.comment for s in said if not s.claims))
    symptom = ". ".join(w.strip().rstrip(".") for w in words if w.strip())
    try:
        return diagnose(paths, symptom=symptom, missing=given.missing, root=case.workspace, asked=case.asked)
    except UnreadableInput:
        if given.paths:
            raise
        return diagnose([case.workspace], symptom=symptom, missing=given.missing, root=case.workspace, asked=case.asked)


def _judged(report: Report, case: Case, *, may_run: bool) -> Report:
    run = TrialRun(case.verify, case.workspace, case.scratch / "evidence", case.say) if (
        case.allow_run and case.verify is not None and case.verify.command) else None
    report = with_observed_run(report, case, may_run=may_run)
    seen = steering.reweighed(report.seen, failed_before.shifts(_strikes_before(case)),
                              "What was tried before in this folder")
    return replace(report, trial_run=run, seen=replace(steering.steered(seen, said_in(case)), symptom=_told(case)))


def _strikes_before(case: Case) -> tuple[Strike, ...]:
    return failed_before.strikes_before(case.workspace, case.scratch.name)


def said_in(case: Case) -> tuple[steering.Steer, ...]:
    """What the person said at the gate, read."""
    return steering.steers(case.feedback, case.workspace, load_catalog())


def with_what_was_said(made: Diagnosis, case: Case, answers: Sequence[SymptomAnswer] = ()) -> Diagnosis:
    """The diagnosis, with what each comment of the person did to it. `answers`: what was looked up of their words."""
    said = tuple(replace(s, found=_found(s, answers)) for s in said_in(case))
    told = " ".join(filter(None, (failed_before.told(_strikes_before(case), made.failure_mode),
                                  steering.told(said, made.failure_mode, case.hypotheses))))
    wishes = [s.comment for s in said if s.wish]
    answered = made.model_copy(update={"root_cause": f"{made.root_cause} {told}"}) if told else made
    return _with_wishes(answered, wishes) if wishes else answered


def _found(said: steering.Steer, answers: Sequence[SymptomAnswer]) -> str:
    """What the record shows of what a comment says was seen, "" where it says nothing that could be looked up."""
    told = [proposal.answered(a).rstrip(".") for a in answers
            if a.answer in ("seen", "not_seen") and a.symptom.said in said.comment]
    return "; ".join(f"{t[0].lower()}{t[1:]}" for t in told[:2])


def _with_wishes(made: Diagnosis, wishes: Sequence[str]) -> Diagnosis:
    """The last option that a person makes by hand also says what they asked for."""
    by_hand = [f for f in made.options if f.instructions]
    if not by_hand:
        return made
    chosen = by_hand[-1]
    told = tuple(chosen.instructions[0].model_copy(update={"text": f'As you asked: "{line(w, 200)}"'}) for w in wishes)
    more = chosen.model_copy(update={"instructions": (*chosen.instructions, *told)})
    asked = "\n".join(f"{i.where}: {i.text}" for i in told)
    return made.model_copy(update={"options": tuple(more if f is chosen else f for f in made.options),
                                   "proposed_fix": f"{made.proposed_fix}\n{asked}"})


def known_ids(report: Report, known: Iterable[Evidence]) -> proposal.Exhibits:
    """Findings that were evidence before keep their ids; new ones take ids that are free."""
    before = {(e.rule, e.statement, e.place): e.id for e in known}
    ids, taken = {}, set(before.values())
    fresh = []
    for finding in report.seen.findings:
        old = before.get((finding.rule, finding.statement, report.places.describe(finding)))
        if old is None:
            fresh.append(finding)
        else:
            ids[id(finding)] = old
    return proposal.Exhibits({**ids, **proposal.Exhibits.of(fresh, taken).ids})


def tried(case: Case) -> frozenset[str]:
    """Failure modes whose fix failed, that are refused after three strikes, or that a person rejected.

    A change that brought an error of its own speaks against that change: its cause stands.
    """
    failed = {a.approach.failure_mode for a in case.attempts
              if a.verification and a.verification.failed and not a.verification.own_error}
    return frozenset(failed | {r.split(" in ")[0] for r in (*case.refused, *case.rejected)})


def _needs_code(found: triage.Hypothesis, report: Report) -> NeedsData:
    """A cause without a line of code cannot be presented for approval: a fix names path and line."""
    return NeedsData(
        reason=f"The cause is known ({found.confidence:.2f}): {found.issue.rstrip('.')}. No line of the training "
               "code that was read belongs to it, so no fix can be proposed.",
        artifacts=(*_absent(report), "the training script (and its configuration) that this run was started with"),
        next_checks=tuple(map(from_anywhere, report.next_checks)))


def _needs_data(report: Report, tried: frozenset[str], case: Case) -> NeedsData:
    verdict = report.seen.verdict
    reason = verdict.reason
    first = verdict.hypotheses[0].mode.id if verdict.hypotheses else ""
    if tried:
        rejected = {r.split(" in ")[0] for r in case.rejected}
        said = f"You rejected: {_in_words(tried)}" if tried <= rejected else (
            f"Tried before{' or rejected' if tried & rejected else ''}: {_in_words(tried)}")
        reason = f"{said}. No other cause is sure enough on this evidence."
    elif before := failed_before.told(_strikes_before(case), first):
        reason = f"{reason.rstrip('.')}. {before}"
    reason = " ".join((reason, *(f"{f[0].upper()}{f[1:]}." for f in case.feedback if f.startswith(MEANWHILE))))
    if waits := failed_before.open_decision(case.workspace, case.refused):
        reason = f"{reason} {waits}."
    if left_out := lacked(case):
        reason = f"{reason.rstrip('.')}. {left_out}"
    said = steering.noted(said_in(case), report.seen)
    reason = NamedPlaces.of(a.path for a in report.run.artifacts).told(reason)
    return NeedsData(reason=f"{reason} {said}" if said else reason, artifacts=(*_absent(report), *report.wanted),
                     next_checks=tuple(map(from_anywhere, next_steps.commands(report, tried))),
                     questions=(*_unanswered(report), *_questions(report, tried)))


def _in_words(modes: Iterable[str]) -> str:
    """Failure modes by what they say, with their ids: "The learning rate is too high [lr.too-high]"."""
    catalog = load_catalog()
    return "; ".join(f"{catalog[m].claim.rstrip('.')} [{m}]" if m in catalog else m for m in sorted(modes))


def _unanswered(report: Report) -> tuple[str, ...]:
    """What has to be asked about the symptoms that were stated and are still open."""
    open_ = [a for a in report.seen.symptom_answers if a.is_open and a.question]
    return tuple(f'You said "{line(a.symptom.said, 120)}": {a.statement.rstrip(".")}. {a.question}' for a in open_[:2])


def _absent(report: Report) -> tuple[str, ...]:
    """Entries that were handed over and are not there, in words."""
    return missing_in_words(m for m in report.missing if ": " in m)


def _questions(report: Report, tried: frozenset[str]) -> tuple[str, ...]:
    """For each cause that is left: which it is, what to look at, and what would rule it out."""
    left = [h for h in report.seen.verdict.hypotheses if h.speaks_for and h.mode.id not in tried and h.mode.confirm]
    return tuple(this_run(h, report.places, report.names).told(_question(h)) for h in left[:3])


def _question(found: triage.Hypothesis) -> str:
    measured = proposal.measured_of(found)
    look = proposal.step_text(found.mode.confirm[0], measured, proposal.in_words)
    out = "".join(f" This rules it out: {proposal.step_text(step, measured, proposal.in_words)}."
                  for step in found.mode.rule_out[:1])
    return f"Is it this: {found.claim.rstrip('.')} [{found.mode.id}]? Check: {look}.{out}"


