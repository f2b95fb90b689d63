"""From checked claims to what a person is shown: the lead's cause where it is proven, the engine's where that stands,
or what is missing, with both sides named.

A confidence is the arithmetic of `weighing`, citations are evidence of the session, and a fix names a line that exists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from traindx import offers, proposal
from traindx.diagnose import Report
from traindx.gate import CONFIDENT, empty
from traindx.investigators.base import Case
from traindx.investigators.claude_code import evidence, weighing
from traindx.investigators.claude_code.answers import Claimed, Lead, Offer, Option
from traindx.investigators.claude_code.checking import Checker, Proven, place_of
from traindx.investigators.offline import known_ids, tried
from traindx.model import Diagnosis, Evidence, Fix, Healthy, Instruction, NeedsData, ProposedEdit
from traindx.safe_text import line
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Location
from traindx_tools.phrases import fill
from traindx_tools.triage import Hypothesis

CLAIMS_CITED = 4
"""Checked claims that are shown with an engine's diagnosis; the rest lies in the session's folder."""
DISSENT_SHOWN = 8


@dataclass(frozen=True)
class Ground:
    """What is concluded from: the case with all evidence, the engine's report, claims that stand, the lead's answer."""

    case: Case
    report: Report
    proven: tuple[Proven, ...]
    led: Lead | None
    checker: Checker

    @property
    def claimed(self) -> Claimed | None:
        """The cause that the lead names."""
        return self.led.diagnosis[0] if self.led is not None and self.led.status == "diagnosis" and self.led.diagnosis \
            else None


@dataclass(frozen=True)
class Candidate:
    """A cause that could be presented. `by`: "lead" or "engine"."""

    by: str
    made: Diagnosis
    direct: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same cause when it comes again."""
        return (self.made.failure_mode, self.made.location or "")


def candidates(on: Ground) -> tuple[Candidate, ...]:
    """What is sure enough, in the order in which it is presented: a proven cause of the lead before the engine's."""
    ours, theirs = of_lead(on), of_engine(on)
    if ours is not None and theirs is not None and _same(ours.made, theirs.made):
        sure = max(ours.made.confidence, theirs.made.confidence)
        joined = _joined(theirs.made, ours.made) if _placed_alike(ours.made, theirs.made) else ours.made
        sure = min(sure, max(e.cap for e in joined.evidence))
        return (Candidate("lead", joined.model_copy(update={"confidence": sure}), ours.direct),)
    found = [c for c in (ours, theirs) if c is not None]
    if ours is not None and not ours.direct and theirs is not None:
        found = sorted(found, key=lambda c: -c.made.confidence)
    return tuple(found)


def _same(a: Diagnosis, b: Diagnosis) -> bool:
    return a.failure_mode == b.failure_mode or _placed_alike(a, b)


def _placed_alike(a: Diagnosis, b: Diagnosis) -> bool:
    return a.location is not None and a.location == b.location


def _joined(theirs: Diagnosis, ours: Diagnosis) -> Diagnosis:
    """The engine's diagnosis, whose changes were tried, with what the lead's own rests on."""
    more = [e for e in ours.evidence if e.id not in theirs.cites]
    return theirs.model_copy(update={"cites": (*theirs.cites, *(e.id for e in more)),
                                     "evidence": (*theirs.evidence, *more)})


# The engine's cause


def of_engine(on: Ground) -> Candidate | None:
    """The likeliest cause that is sure enough with checked claims weighed in, and has a place; None without one."""
    report = on.report
    for hypothesis in weighing.weighed(report.seen.verdict.hypotheses, on.proven):
        if hypothesis.confidence >= CONFIDENT and hypothesis.mode.id not in tried(on.case):
            placed = _placed(hypothesis, report, weighing.about(hypothesis.mode.id, on.proven))
            if placed is None or not placed.speaks_for:
                return None
            made = proposal.diagnosis(placed, report.seen, known_ids(report, on.case.evidence), report.places,
                                      report.command, report.offer(placed), report.names)
            return Candidate("engine", _with_claims(made, on))
    return None


def _placed(found: Hypothesis, report: Report, proven: Sequence[Proven]) -> Hypothesis | None:
    """The hypothesis where its line of code is known, by the engine or by a checked claim; else None."""
    if proposal.code_place(found, report.places) is not None:
        return found
    for p in proven:
        place = place_of(p.place) if p.kind == "line" and p.supports else None
        at = Location(file=place[0], line=place[1]) if place else None
        if report.places.code_place(at) is not None:
            return dataclasses.replace(found, location=at)
    return None


def _with_claims(made: Diagnosis, on: Ground) -> Diagnosis:
    """The diagnosis with the checked claims about its cause cited."""
    ours = [evidence.of(p, on.case.evidence) for p in weighing.about(made.failure_mode, on.proven) if p.supports]
    more = list({e.id: e for e in ours if e is not None and e.id not in made.cites}.values())[:CLAIMS_CITED]
    said = " ".join(f"{line(e.statement, 400).rstrip('.')} [{e.id}]." for e in more)
    return made.model_copy(update={
        "root_cause": f"{made.root_cause} {said}".strip(),
        "cites": (*made.cites, *(e.id for e in more)), "evidence": (*made.evidence, *more)})


# The lead's cause


def of_lead(on: Ground) -> Candidate | None:
    """The lead's cause where its citations stand and the arithmetic reaches, also one of no catalog; else None."""
    said = on.claimed
    if said is None or said.failure_mode in tried(on.case) or _says_nothing(said):
        return None
    place = _existing_place(said.location, on.checker)
    cited = _cited(said, on)
    about = weighing.about(said.failure_mode, on.proven)
    direct = weighing.direct(about)
    sure = max(_confidence(said.failure_mode, on, cited), weighing.proven_cause(cited, about) if direct else 0.0)
    sure = min(sure, max((e.cap for e in cited), default=0.0))
    if place is None or not cited or sure < CONFIDENT:
        return None
    return Candidate("lead", _diagnosis(said, on, place, cited, sure), direct)


def standing(on: Ground) -> str:
    """Why the lead's cause is not presented, in one sentence; "" without one."""
    said = on.claimed
    if said is None or _says_nothing(said):
        return ""
    about = weighing.about(said.failure_mode, on.proven)
    lacks = "nothing that was run speaks for it" if not any(p.kind == "run" and p.supports for p in about) else \
        "what was run speaks against it as well"
    if _existing_place(said.location, on.checker) is None:
        lacks = f"there is no line {said.location[:80]}"
    elif not _cited(said, on):
        lacks = "no citation of it stands the check"
    return (f"The lead holds {said.failure_mode} at {line(said.location, 120)}: {line(said.claim, 300).rstrip('.')}; "
            f"{lacks}.")


def _existing_place(location: str, checker: Checker) -> tuple[str, int] | None:
    place = place_of(location)
    return None if place is None or checker.line_missing(*place) is not None else place


def _cited(said: Claimed, on: Ground) -> tuple[Evidence, ...]:
    """Evidence of the session that checked claims about the cause rest on, with a value and a place."""
    ours = [evidence.of(p, on.case.evidence) for p in weighing.about(said.failure_mode, on.proven) if p.supports]
    known = {e.id: e for e in ours if e is not None and e.value.strip() and e.place.strip()}
    return tuple(sorted(known.values(), key=lambda e: -e.cap))


def _confidence(mode: str, on: Ground, cited: Sequence[Evidence]) -> float:
    """By triage's own hypothesis where there is one; a cause that it does not know is weighed against all of them."""
    hypotheses = weighing.weighed(on.report.seen.verdict.hypotheses, on.proven)
    ours = next((h for h in hypotheses if h.mode.id == mode), None)
    if ours is not None and ours.speaks_for:
        return ours.confidence
    return weighing.unlisted(cited, weighing.about(mode, on.proven), hypotheses)


def _says_nothing(said: Claimed) -> bool:
    return any(map(empty, (said.root_cause, said.why_this_happens, said.claim))) or not said.failure_mode.strip()


def _diagnosis(said: Claimed, on: Ground, place: tuple[str, int], cited: Sequence[Evidence], sure: float) -> Diagnosis:
    mode = load_catalog().get(said.failure_mode)
    told = (offered_fix(o, place) for o in said.options)
    offered = tuple(after_its_trial(f, on.report) for f in told if f is not None)
    options = offered if any(f.option == "A" for f in offered) else (_in_words(said, place, cited),)
    fallback = ("The lines around the place keep what they do for runs without the fault.",)
    look_alikes = mode.will_not_fix if mode else ("The same symptom from another cause.",)
    return Diagnosis(
        symptom=on.case.symptom.observed, claim=said.claim, root_cause=said.root_cause,
        why_this_happens=said.why_this_happens,
        proposed_fix="\n".join(f"{o.option}: {proposal.fix_text(o)}" for o in options),
        will_change=tuple(t for t in said.will_change if not empty(t)) or (mode.will_change if mode else fallback),
        will_not_fix=tuple(t for t in said.will_not_fix if not empty(t)) or look_alikes,
        failure_mode=said.failure_mode, component=place[0], confidence=round(sure, 3),
        location=f"{place[0]}:{place[1]}", severity=said.severity, cites=tuple(e.id for e in cited),
        evidence=tuple(cited), options=options)


def _in_words(said: Claimed, place: tuple[str, int], cited: Sequence[Evidence]) -> Fix:
    """The targeted fix as an instruction, where no complete option was told."""
    mode = load_catalog().get(said.failure_mode)
    told = next((o.change or o.summary for o in said.options if not empty(o.change or o.summary)), "")
    change = told or (fill(mode.targeted.change, {}) if mode else said.claim)
    return Fix(option="A", summary=said.claim, instructions=(Instruction(path=place[0], line=place[1], text=change),),
               metric=fill(mode.targeted.metric, {}) if mode else
               f"what the evidence shows does not come back: {cited[0].statement}",
               verify="repeat the run past the step where it failed, and diagnose it again",
               otherwise="send the diagnosis back with what the new run showed")


def offered_fix(option: Offer, place: tuple[str, int]) -> Fix | None:
    """An option of the lead in the session's form, or None where it says too little or contradicts itself."""
    said = (option.summary, option.metric, option.verify, option.otherwise)
    if any(map(empty, said)) or (not option.edits and empty(option.change)):
        return None
    words = () if option.edits else (Instruction(path=place[0], line=place[1], text=option.change),)
    try:
        return Fix(option=option.option, summary=option.summary, metric=option.metric, verify=option.verify,
                   otherwise=option.otherwise, instructions=words,
                   edits=tuple(ProposedEdit(**e.model_dump()) for e in option.edits))
    except ValueError:
        return None


def after_its_trial(option: Fix, report: Report) -> Fix:
    """The option as it may be offered: where its edits fail their trial, in words that say so."""
    if not option.edits:
        return option
    found = offers.offer(option.edits, (), report.places, report.seen.code, report.trial_run)
    if found.refused:
        told = tuple(Instruction(path=e.path, line=e.line, end_line=max(e.end_line, e.line),
                                 text=f"{option.summary.rstrip('.')}. The diff for this was tried and is not offered: "
                                      f"{found.refused}") for e in option.edits)
        return option.model_copy(update={"edits": (), "instructions": (*option.instructions, *told)})
    said = f"{found.remark[0].upper()}{found.remark[1:]}." if found.remark else option.change
    return option.model_copy(update={"change": said})


def edits_of(option: Option) -> tuple[ProposedEdit, ...]:
    """The option's edits in the session's form. Raises ValueError (pydantic's) for an edit that contradicts itself."""
    return tuple(ProposedEdit(**e.model_dump()) for e in option.edits)


# What stands beside it


def dissent(made: Diagnosis, on: Ground) -> tuple[str, ...]:
    """Who holds something else than what is presented, with what stands for it: the engine, the lead, specialists."""
    said = []
    verdict = on.report.seen.verdict
    first = verdict.hypotheses[0] if verdict.hypotheses else None
    if first is not None and first.confidence >= CONFIDENT and first.mode.id != made.failure_mode:
        said.append(f"The engine's ranking holds {first.mode.id} ({first.confidence:.2f}): "
                    f"{line(first.issue, 300).rstrip('.')}.")
    if verdict.status == "healthy":
        said.append(f"The engine saw nothing wrong: {line(verdict.reason, 300).rstrip('.')}.")
    claimed = on.claimed
    if claimed is not None and claimed.failure_mode != made.failure_mode:
        said.append(standing(on))
    said += [f"{p.who} against it: {_of(p)}" for p in weighing.about(made.failure_mode, on.proven) if not p.supports]
    said += [f"{p.who} for {p.failure_mode}: {_of(p)}" for p in on.proven
             if p.supports and p.failure_mode not in (None, made.failure_mode)]
    return tuple(dict.fromkeys(filter(None, said)))[:DISSENT_SHOWN]


def _of(p: Proven) -> str:
    return f"{line(p.claim, 300).rstrip('.')} ({p.place}: {line(p.value, 200)})."


def nothing_sure(on: Ground, offline: Diagnosis | NeedsData | Healthy, dropped: int) -> NeedsData | Healthy:
    """The answer where no cause stands: healthy only where no checked claim speaks of a cause and the lead has none."""
    claims = [p for p in on.proven if p.supports and p.failure_mode is not None]
    sides = [*filter(None, [standing(on)]), *(f"{p.who} for {p.failure_mode}: {_of(p)}" for p in claims[:4])]
    led = on.led
    if isinstance(offline, Healthy):
        if not sides and (led is None or led.status != "needs_data"):
            return Healthy(reason=counted(offline.reason, dropped))
        sides.append(f"The engine saw nothing wrong: {line(offline.reason, 300).rstrip('.')}.")
        reason = ("No cause is proven, and the run is not called healthy while a checked claim stands or the lead is "
                  "open.")
    elif isinstance(offline, Diagnosis):
        sides.append(f"The engine's ranking held {offline.failure_mode} ({offline.confidence:.2f}): "
                     f"{line(offline.claim or offline.root_cause, 300).rstrip('.')}.")
        against = [p for p in on.proven if not p.supports and p.failure_mode == offline.failure_mode]
        sides += [f"{p.who} against it: {_of(p)}" for p in against[:4]]
        reason = "No cause stands after what was checked."
    else:
        reason = offline.reason
    base = offline if isinstance(offline, NeedsData) else NeedsData(reason=reason)
    missing = tuple(m for m in (led.missing if led is not None else ()) if not empty(m))
    questions = tuple(q for q in (led.questions if led is not None else ()) if not empty(q))
    return base.model_copy(update={
        "reason": counted(" ".join((reason, *sides)), dropped),
        "next_checks": tuple(dict.fromkeys((*base.next_checks, *missing)))[:10],
        "questions": tuple(dict.fromkeys((*base.questions, *questions)))})


def counted(text: str, dropped: int) -> str:
    return f"{text.rstrip()} {dropped} claims did not stand the check of their citations and were dropped." if dropped \
        else text


