"""One step of a session with a lead: what it looks at, what stands of it, who attacks it, and what is concluded.

    lead (blind, facts, guess, news) -> candidates -> adversary -> the lead answers an objection, once -> conclusion

What was concluded is kept in the session's folder, where no tool can write: `diagnose` presents it, also after a crash.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from traindx.diagnose import Report
from traindx.durable import write_state
from traindx.gate import CONFIDENT
from traindx.investigators.base import ENGINE, UNCHALLENGED, Case, Conclusion
from traindx.investigators.bench.outputs import Outputs
from traindx.investigators.claude_code import adversary, concluding, evidence, facts, prompts, reports, triangulation
from traindx.investigators.claude_code.adversary import Challenge
from traindx.investigators.claude_code.answers import Lead
from traindx.investigators.claude_code.checking import Checker, Dropped, Proven
from traindx.investigators.claude_code.concluding import Candidate, Ground
from traindx.investigators.claude_code.conversation import FOLDER
from traindx.investigators.claude_code.leading import FACTS, GUESS, LOOK, LeadThread, key_of, keyed
from traindx.investigators.claude_code.redaction import redacted_json
from traindx.investigators.claude_code.team import Team, assignments
from traindx.model import Diagnosis, Evidence, Healthy, NeedsData
from traindx.notices import Notice
from traindx_tools.catalog.catalog import load_catalog

ROUNDS = 4
"""Challenges at most: the lead's cause, what it answers an objection with, the engine's, and one to spare."""
KEPT = "conclusion.json"
_NEW_SHOWN = 20
"""New findings that are told with what came since."""


@dataclass
class Deliberation:
    """The work on one case. `evidence` is what it adds; `seconds` says what is left for a question."""

    case: Case
    report: Report
    lead: LeadThread
    team: Team
    adversary_tools: tuple[str, ...]
    model: str
    turns: int
    seconds: Callable[[], float]
    kept_back: float = 0.0
    """Seconds that are kept for the adversary."""
    evidence: tuple[Evidence, ...] = ()
    claims: tuple[Proven, ...] = ()
    """All that stood when it was concluded."""
    _more: list[Proven] = field(default_factory=list)
    """Claims of the adversary."""
    _degraded: list[str] = field(default_factory=list)
    _challenged: dict[tuple[str, str], Challenge] = field(default_factory=dict)
    _who: set[str] = field(default_factory=lambda: {ENGINE})

    async def concluded(self, offline: Conclusion) -> Conclusion:
        """What is presented. `offline`: the engine's own conclusion."""
        await self._led()
        objected = False
        for _ in range(ROUNDS):
            ground, dropped = self._ground()
            found = await asyncio.to_thread(concluding.candidates, ground)  # a change that is offered is tried first
            if not found:
                break
            first = found[0]
            result = self._challenged.get(first.key)
            if result is not None:
                return self._named(self._presented(first, ground, result, dropped))
            result = await self._attacked(first)
            if result.contested and not objected and self.lead.last is not None:
                objected = await self._objection(result)
        ground, dropped = self._ground()
        all_found = await asyncio.to_thread(concluding.candidates, ground)
        found = tuple(c for c in all_found if c.key in self._challenged)
        if found:
            return self._named(self._presented(found[0], ground, self._challenged[found[0].key], dropped))
        return self._named(concluding.nothing_sure(ground, offline, len(dropped)))

    # The lead

    async def _led(self) -> None:
        """Everything that was not said to it yet, in its order."""
        news = {key: n for key, n in keyed(self.case.feedback).items() if not self.lead.knows(key)}
        fresh = not self.lead.begun
        measured = [e for e in self.case.evidence if e.finding is not None and not self.lead.knows(e.id)]
        steps: list[tuple[tuple[str, ...], str]] = [
            ((LOOK,), prompts.first_look(self.lead.agent, self.case)),
            ((FACTS,), prompts.with_facts(facts.facts(self.report), assignments(self.report.seen, self.case))),
            ((GUESS,), prompts.with_guess(facts.guess(self.report)))]
        if news and not fresh:
            steps.append((tuple(news), prompts.with_news(tuple(news.values()), measured[-_NEW_SHOWN:])))
        for keys, prompt in steps:
            if not await self.lead.say(keys, prompt, self._seconds_of_lead(), self._most()):
                break
        if self.lead.failure is None:  # the facts held what was measured, and the first message what was said
            self.lead.mark((*news, *(e.id for e in measured)))
        else:
            self._degraded.append(f"lead: {self.lead.failure}")
        if self.lead.last is not None:
            self._who.add("lead")

    def _seconds_of_lead(self) -> float:
        """What is left, with the adversary's part kept back."""
        left = self.seconds()
        return max(left - self.kept_back, left / 2)

    def _most(self) -> float:
        """What one thing said to the lead may cost: what is left, with the adversary's part kept back."""
        purse, each = self.team.asker.purse, self.team.asker.most_each
        return max(purse.left - each, purse.left / 2)

    async def _objection(self, result: Challenge) -> bool:
        text = result.objections()
        key = f"objection-{key_of(text)}"
        if not await self.lead.say((key,), prompts.challenged(text), self._seconds_of_lead(), self._most()):
            self._degraded.append(f"lead: no answer to the adversary ({self.lead.failure})")
        return True

    # What stands

    def _ground(self) -> tuple[Ground, tuple[Dropped, ...]]:
        """The claims of all, checked, as evidence of the session; and those that did not stand."""
        checker = self.checker()
        works = [reports.checked(who, report, checker) for who, report in reports.kept(self.case.scratch)]
        self._who.update(w.who for w in works)
        rows = triangulation.table(works)
        if rows:
            write_state(self.case.scratch / "evidence" / "triangulation.md", triangulation.markdown(rows).encode())
        proven, dropped = _of_lead(self.lead.last, checker)
        everything = self.claims = (*(p for w in works for p in w.proven), *proven, *self._more)
        self.evidence = (*self.evidence, *evidence.of_claims(everything, (*self.case.evidence, *self.evidence)))
        known = dataclasses.replace(self.case, evidence=(*self.case.evidence, *self.evidence))
        lost = (*(d for w in works for d in w.dropped), *dropped)
        return Ground(known, self.report, everything, self.lead.last, checker), lost

    def checker(self) -> Checker:
        """Checks against the workspace, the session's evidence, its outputs and what was fetched."""
        catalog = load_catalog()
        pages = {*self.team.asker.pages, *reports.fetched(self.case.scratch)}
        known = {*catalog, *(s.where for m in catalog.values() for s in m.sources), *pages}
        return Checker(self.team.asker.scope, {e.id: e for e in (*self.case.evidence, *self.evidence)},
                       frozenset(known), Outputs(self.case.scratch).all())

    # The adversary

    async def _attacked(self, candidate: Candidate) -> Challenge:
        """What the adversary brings against it; its claims are weighed from then on."""
        question = prompts.adversary(self.case, candidate.made, self.adversary_tools, self.model, self.turns)
        reply = await self.team.ask(question, self.seconds())
        result = adversary.challenge(reply, self.checker(), candidate.made.failure_mode)
        self._challenged[candidate.key] = result
        self._more += result.claims
        text = json.dumps(redacted_json(result.to_json()), indent=1, ensure_ascii=True)
        write_state(self.case.scratch / "evidence" / "adversary.json", text.encode("ascii"))
        if result.failure is None:
            self._who.add(adversary.WHO)
        self.team.asker.hear(Notice("checked", adversary.WHO, f"{len(result.against)} disproofs and {len(result.held)} "
                                                              "checks without one stand"))
        return result

    # What is presented

    def _presented(self, candidate: Candidate, ground: Ground, result: Challenge,
                   dropped: Sequence[Dropped]) -> Diagnosis:
        made, count = candidate.made, len(dropped)
        if not result.made:
            why = str(result.failure) if result.failure is not None else "no check of the adversary stands"
            self._degraded.append(f"unchallenged: {why}")
        sure = made.confidence if result.made else min(made.confidence, UNCHALLENGED)
        assert sure >= CONFIDENT, "a candidate is sure enough, and the cap lies above it"
        said = concluding.counted(f"{made.root_cause} {adversary.looked_for(result)}".strip(), count)
        return made.model_copy(update={
            "confidence": sure, "root_cause": said,
            "dissent": tuple(dict.fromkeys((*concluding.dissent(made, ground), *adversary.dissent(result))))})

    def _named(self, conclusion: Conclusion) -> Conclusion:
        """The conclusion with who worked on it, and who should have and did not."""
        order = (ENGINE, "lead", *sorted(self._who - {ENGINE, "lead", adversary.WHO}), adversary.WHO)
        return conclusion.model_copy(update={"investigators": tuple(w for w in order if w in self._who),
                                             "degraded": tuple(dict.fromkeys(self._degraded))})


def _of_lead(led: Lead | None, checker: Checker) -> tuple[tuple[Proven, ...], tuple[Dropped, ...]]:
    """The lead's claims: those for its cause speak for that cause, whatever mode they name."""
    if led is None:
        return (), ()
    own = [item.model_copy(update={"failure_mode": d.failure_mode}) for d in led.diagnosis for item in d.evidence]
    return checker.items("lead", (*own, *led.evidence))


def digest_of(case: Case) -> str:
    """What a conclusion belongs to: everything that came to the case since it began."""
    return json.dumps([case.feedback, [a.model_dump(mode="json") for a in case.attempts], case.refused, case.rejected,
                       case.artifacts.model_dump(mode="json")], sort_keys=True)


def keep(case: Case, conclusion: Conclusion) -> None:
    """Keep a conclusion for `diagnose`. Raises StateNotWritable."""
    body = {"kind": type(conclusion).__name__, "of": digest_of(case), "said": conclusion.to_json()}
    write_state(case.scratch / FOLDER / KEPT, json.dumps(body, ensure_ascii=True).encode("ascii"))


def kept(case: Case) -> Conclusion | None:
    """What was concluded from exactly this case, or None."""
    kinds: dict[str, type[Diagnosis] | type[NeedsData] | type[Healthy]] = {
        "Diagnosis": Diagnosis, "NeedsData": NeedsData, "Healthy": Healthy}
    try:
        body = json.loads((case.scratch / FOLDER / KEPT).read_text(encoding="ascii"))
        return kinds[body["kind"]].model_validate(body["said"]) if body["of"] == digest_of(case) else None
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None
