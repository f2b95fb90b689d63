"""From checked evidence to a diagnosis: the engine's cause where one is sure enough, else the lead's.

Either way its confidence is the engine's arithmetic, its citations are evidence of the session, and its fix names a
line that exists.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from traindx import offers, proposal
from traindx.diagnose import Report
from traindx.gate import CONFIDENT, empty
from traindx.investigators.base import Case
from traindx.investigators.claude_code import evidence, prompts, weighing
from traindx.investigators.claude_code.answers import Claimed, Lead, Option, Patch, read
from traindx.investigators.claude_code.asking import Reply
from traindx.investigators.claude_code.checking import Proven, place_of
from traindx.investigators.claude_code.team import Round, Team
from traindx.investigators.offline import known_ids, tried
from traindx.model import Diagnosis, Evidence, Fix, Instruction, ProposedEdit
from traindx.safe_text import line
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Location
from traindx_tools.phrases import fill
from traindx_tools.triage import Hypothesis

CLAIMS_CITED = 4
"""Checked claims that are shown with an engine's diagnosis; the rest lies in the session's folder."""


def of_engine(case: Case, report: Report, found: Round) -> Diagnosis | None:
    """The likeliest cause that is sure enough with checked claims weighed in, and has a place; None without one."""
    for hypothesis in weighing.weighed(report.seen.verdict.hypotheses, found.proven):
        if hypothesis.confidence >= CONFIDENT and hypothesis.mode.id not in tried(case):
            placed = _placed(hypothesis, report, weighing.about(hypothesis.mode.id, found.proven))
            if placed is None or not placed.speaks_for:
                return None
            exhibits = known_ids(report, case.evidence)
            made = proposal.diagnosis(placed, report.seen, exhibits, report.places, report.command,
                                      report.offer(placed))
            return _with_claims(made, case, found)
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


def _with_claims(made: Diagnosis, case: Case, found: Round) -> Diagnosis:
    """The diagnosis with the checked claims about its cause cited, and with what nobody looked at."""
    ours = [evidence.of(p, case.evidence) for p in weighing.about(made.failure_mode, found.proven) if p.supports]
    more = list({e.id: e for e in ours if e is not None and e.id not in made.cites}.values())[:CLAIMS_CITED]
    said = " ".join(f"{line(e.statement, 400).rstrip('.')} [{e.id}]." for e in more)
    return made.model_copy(update={
        "root_cause": with_gaps(f"{made.root_cause} {said}".strip(), found),
        "cites": (*made.cites, *(e.id for e in more)),
        "evidence": (*made.evidence, *more),
    })


def with_gaps(text: str, found: Round) -> str:
    """The text, with the specialists named who brought no answer, and why."""
    gaps = [f"{w.who} ({w.failure.state}: {line(w.failure.detail, 160).rstrip('.')}; {w.failure.advice})"
            for w in found.failed if w.failure is not None]
    dropped = len(found.dropped)
    parts = [text.rstrip()]
    if gaps:
        parts.append(f"Not looked at by: {'; '.join(gaps)}.")
    if dropped:
        parts.append(f"{dropped} claims of specialists did not stand the check of their citations and were dropped.")
    return " ".join(parts)


def led(reply: Reply) -> Lead | None:
    """The lead's answer in its form, or None."""
    answer = read(Lead, reply.answer) if reply.answer is not None else None
    return answer if isinstance(answer, Lead) else None


def claimed(reply: Reply) -> Claimed | None:
    """The lead's diagnosis, or None where it gives none."""
    answer = led(reply)
    return answer.diagnosis[0] if answer is not None and answer.status == "diagnosis" and answer.diagnosis else None


async def of_lead(case: Case, report: Report, found: Round, said: Claimed, team: Team, model: str,
                  seconds: float) -> Diagnosis | None:
    """The lead's diagnosis, where its citations stand and the arithmetic reaches; None otherwise."""
    place = _existing_place(said.location, team, case)
    cited = _cited(said, case, found)
    sure = _confidence(said.failure_mode, report, found, cited)
    if place is None or not cited or sure < CONFIDENT or said.failure_mode in tried(case) or _says_nothing(said):
        return None
    made = _diagnosis(said, case, place, cited, sure)
    question = prompts.author(team.agents["fix-author"], str(case.workspace), made, None, "", model)
    written = _options(await team.ask(question, seconds))
    options = await asyncio.to_thread(lambda: tuple(after_its_trial(o, report) for o in written))
    if options:
        made = made.model_copy(update={
            "options": options, "proposed_fix": "\n".join(f"{o.option}: {proposal.fix_text(o)}" for o in options)})
    return made.model_copy(update={"root_cause": with_gaps(made.root_cause, found)})


def _existing_place(location: str, team: Team, case: Case) -> tuple[str, int] | None:
    place = place_of(location)
    if place is None or team.checker(case.evidence).line_missing(*place) is not None:
        return None
    return place


def _cited(said: Claimed, case: Case, found: Round) -> tuple[Evidence, ...]:
    """Evidence of the session that the lead cites and that has a value and a place, with the checked claims for it."""
    known = {e.id: e for e in case.evidence}
    ours = [known[c.strip("[] ")] for c in said.cites if c.strip("[] ") in known]
    ours += [e for p in weighing.about(said.failure_mode, found.proven) if p.supports
             for e in [evidence.of(p, case.evidence)] if e is not None]
    return tuple({e.id: e for e in ours if e.value.strip() and e.place.strip()}.values())


def _confidence(mode: str, report: Report, found: Round, cited: Sequence[Evidence]) -> float:
    """By triage's own hypothesis where there is one; a cause that it does not know is weighed against all of them."""
    hypotheses = weighing.weighed(report.seen.verdict.hypotheses, found.proven)
    ours = next((h for h in hypotheses if h.mode.id == mode), None)
    if ours is not None and ours.speaks_for:
        return ours.confidence
    return weighing.unlisted(cited, weighing.about(mode, found.proven), hypotheses)


def _says_nothing(said: Claimed) -> bool:
    return any(map(empty, (said.root_cause, said.why_this_happens, said.claim))) or not said.failure_mode.strip()


def _diagnosis(said: Claimed, case: Case, place: tuple[str, int], cited: Sequence[Evidence],
               sure: float) -> Diagnosis:
    mode = load_catalog().get(said.failure_mode)
    planned = fill(mode.targeted.change, {}) if mode else said.claim
    change = said.proposed_fix if not empty(said.proposed_fix) else planned
    gone = f"what the evidence shows does not come back: {cited[0].statement}"
    fix = Fix(option="A", summary=said.claim, instructions=(Instruction(path=place[0], line=place[1], text=change),),
              metric=fill(mode.targeted.metric, {}) if mode else gone,
              verify="repeat the run past the step where it failed, and diagnose it again",
              otherwise="send the diagnosis back with what the new run showed")
    fallback = ("The lines around the place keep what they do for runs without the fault.",)
    look_alikes = mode.will_not_fix if mode else ("The same symptom from another cause.",)
    return Diagnosis(
        symptom=case.symptom.observed, claim=said.claim, root_cause=said.root_cause,
        why_this_happens=said.why_this_happens, proposed_fix=f"A: {proposal.fix_text(fix)}",
        will_change=tuple(t for t in said.will_change if not empty(t)) or (mode.will_change if mode else fallback),
        will_not_fix=tuple(t for t in said.will_not_fix if not empty(t)) or look_alikes,
        failure_mode=said.failure_mode, component=place[0], confidence=round(sure, 3),
        location=f"{place[0]}:{place[1]}", severity=said.severity, cites=tuple(e.id for e in cited),
        evidence=tuple(cited), options=(fix,))


def _options(reply: Reply) -> tuple[Fix, ...]:
    """What the fix author offers, complete options only; empty where the diagnosis does not hold for it."""
    patch = read(Patch, reply.answer) if reply.answer is not None else None
    if not isinstance(patch, Patch) or not patch.diagnosis_holds:
        return ()
    made = [fix_of(o) for o in patch.options]
    whole = tuple(o for o in made if o is not None)
    return whole if any(o.option == "A" for o in whole) else ()


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


def fix_of(option: Option) -> Fix | None:
    """An option in the session's form, or None where it says too little or contradicts itself."""
    if any(map(empty, (option.summary, option.metric, option.verify, option.otherwise))):
        return None
    try:
        return Fix(option=option.option, summary=option.summary, edits=edits_of(option), metric=option.metric,
                   instructions=tuple(Instruction(**i.model_dump()) for i in option.instructions),
                   verify=option.verify, otherwise=option.otherwise, fragile=option.fragile)
    except ValueError:
        return None


def edits_of(option: Option) -> tuple[ProposedEdit, ...]:
    """The option's edits in the session's form. Raises ValueError (pydantic's) for an edit that contradicts itself."""
    return tuple(ProposedEdit(**e.model_dump()) for e in option.edits)

