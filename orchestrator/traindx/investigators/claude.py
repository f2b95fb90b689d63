"""The investigator with language-model specialists: the instruments measure, specialists read, the engine weighs.

Every step begins with the offline investigator. Its findings are the evidence base, and where Claude cannot be reached,
fails or runs out of budget, its result is what the session gets, with what is missing named. The model never decides
whether something is written: the gate, the strikes and the workspace are the session's.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from traindx.agents import LEAD, SPECIALISTS, load_agents
from traindx.delegation import MOST, Assignment
from traindx.diagnose import Report
from traindx.handed_over import hand_over
from traindx.investigators.base import Case, Conclusion, Gathered, Hypotheses
from traindx.investigators.claude_code import concluding, evidence, prompts, weighing
from traindx.investigators.claude_code.adversary import challenge, doubted
from traindx.investigators.claude_code.answers import HandOver
from traindx.investigators.claude_code.askers import asker_of
from traindx.investigators.claude_code.asking import READING, Reply
from traindx.investigators.claude_code.conversation import keep_settings
from traindx.investigators.claude_code.instruments import full_name, names
from traindx.investigators.claude_code.round_file import read_round, write_json, write_round
from traindx.investigators.claude_code.team import Round, Team, assignments
from traindx.investigators.offline import OfflineInvestigator, with_what_was_said
from traindx.model import Diagnosis, Healthy, NeedsData, Symptom
from traindx.notices import Hear, Notice, nobody
from traindx.policy import Scope
from traindx.settings import Settings

ADVERSARYS = ("extract_metrics", "list_findings", "audit_code", "explain")
"""The instruments that look for what would disprove a cause."""

SHARE_OF_STEP = 0.8
"""Of the session's remaining time that one step may use: the rest is for the offline result and the way back."""


@dataclass
class ClaudeInvestigator:
    """Implements `Investigator`. `hear` is told each thing that happens."""

    settings: Settings
    hear: Hear = nobody
    clock: Callable[[], float] = time.monotonic
    name: str = "claude"
    offline: OfflineInvestigator = field(default_factory=OfflineInvestigator)
    _until: float | None = None
    _teams: dict[str, Team] = field(default_factory=dict)

    async def characterize(self, case: Case) -> Symptom:
        """As the instruments see it: no model is needed to read a log."""
        return await self.offline.characterize(case)

    async def hypothesize(self, case: Case) -> Hypotheses:
        """As the engine ranks them."""
        return await self.offline.hypothesize(case)

    async def gather(self, case: Case) -> Gathered:
        """The instruments first, then the specialists whom the table names, side by side."""
        gathered = await self.offline.gather(case)
        report = await self.offline.report(case)
        known = dataclasses.replace(case, evidence=(*case.evidence, *gathered.evidence),
                                    hypotheses=gathered.hypotheses)
        found = await self._round(known, report)
        after = with_claims(known, report, found)
        wanted = await self._wanted(after, report, found)
        if wanted:
            found = Round((*found.works, *(await self.team(case).round(after, wanted, self._seconds(case))).works))
            after = with_claims(known, report, found)
        write_round(case, found)
        return Gathered(after.evidence[len(case.evidence):], after.hypotheses)

    async def diagnose(self, case: Case) -> Conclusion:
        """What the engine concludes from all evidence, challenged by the adversary before a person sees it."""
        report = await self.offline.report(case)
        found = Round() if case.quick else read_round(case)
        made = await asyncio.to_thread(concluding.of_engine, case, report, found)
        if made is None and not case.quick and open_case(report, found):
            made = await self._of_lead(case, report, found)
        if made is None:
            return self._without(await self.offline.diagnose(case), found)
        return await self._challenged(case, with_what_was_said(made, case), found)

    async def _round(self, case: Case, report: Report) -> Round:
        """The specialists of the table, then those whom they hand over to, each once."""
        team = self.team(case)
        sent = assignments(report.seen, case)
        if not sent:
            return Round()
        self.hear(Notice("said", text=f"specialists: {', '.join(a.agent for a in sent)}"))
        first = await team.round(case, sent, self._seconds(case))
        more = not_sent((h for w in first.works for h in w.hand_over), first, "a colleague")
        second = await team.round(case, more, self._seconds(case)) if more else Round()
        return Round((*first.works, *second.works))

    async def _wanted(self, after: Case, report: Report, found: Round) -> tuple[Assignment, ...]:
        """Whom the lead asks for, where the evidence does not settle the cause yet."""
        if not open_case(report, found) or await asyncio.to_thread(
                concluding.of_engine, after, report, found) is not None:
            return ()
        answer = concluding.led(await self._lead(after, found))
        return not_sent(answer.ask, found, "the lead") if answer is not None and not answer.diagnosis else ()

    async def _lead(self, case: Case, found: Round) -> Reply:
        """The lead's reply; the same question in `gather` and `diagnose` is paid for once."""
        team = self.team(case)
        question = prompts.lead(team.agents[LEAD], case, found.told(), self.settings.model, self.settings.web)
        return await team.ask(question, self._seconds(case))

    async def _of_lead(self, case: Case, report: Report, found: Round) -> Diagnosis | None:
        team = self.team(case)
        claimed = concluding.claimed(await self._lead(case, found))
        if claimed is None:
            return None
        return await concluding.of_lead(case, report, found, claimed, team, self.settings.model, self._seconds(case))

    async def _challenged(self, case: Case, made: Diagnosis, found: Round) -> Conclusion:
        team = self.team(case)
        question = prompts.adversary(case, made, (*READING, *map(full_name, ADVERSARYS)), self.settings.model)
        reply = await team.ask(question, self._seconds(case))
        result = challenge(reply, team.checker(case.evidence, reply.fetched))
        write_json(case, "adversary.json", result.to_json())
        return doubted(made, result)

    def _without(self, offline: Conclusion, found: Round) -> Conclusion:
        """The offline conclusion, with what the specialists could not say and what they want to see."""
        if isinstance(offline, NeedsData):
            unknown = tuple(dict.fromkeys(u for w in found.works for u in w.unknown))[:8]
            return offline.model_copy(update={
                "reason": concluding.with_gaps(offline.reason, found),
                "questions": tuple(dict.fromkeys((*offline.questions, *unknown)))})
        if isinstance(offline, Healthy):
            return Healthy(reason=concluding.with_gaps(offline.reason, found))
        return offline

    def team(self, case: Case) -> Team:
        """The specialists of this session, with its purse and its conversations."""
        key = str(case.scratch)
        if key not in self._teams:
            s = self.settings
            asker = asker_of(case.workspace, s, self._scope(case), case.scratch, self.hear)
            keep_settings(case.scratch, s)
            self._teams[key] = Team(asker, load_agents(), s.concurrency, s.seconds_each,
                                    s.specialist_model or s.model, s.web)
        self._teams[key].asker.scope = self._scope(case)  # the person may have handed over more
        return self._teams[key]

    def _scope(self, case: Case) -> Scope:
        given = hand_over(case.artifacts, case.workspace, case.scratch / "evidence")
        return Scope(case.workspace, readable=given.paths, mcp_read_only=frozenset(names()), web=self.settings.web)

    def _seconds(self, case: Case) -> float:
        """What is left for specialists: of their own budget and of the session's."""
        if self._until is None:
            self._until = self.clock() + self.settings.seconds_all
        return max(min(self._until - self.clock(), case.seconds_left * SHARE_OF_STEP), 0.0)


def with_claims(known: Case, report: Report, found: Round) -> Case:
    """The case with checked claims as evidence and the hypotheses weighed again."""
    more = evidence.of_claims(found.proven, known.evidence)
    ranked = weighing.weighed(report.seen.verdict.hypotheses, found.proven)
    sure = {h.mode.id: round(h.confidence, 3) for h in ranked}
    weighed = [h.model_copy(update={"confidence": sure.get(h.failure_mode, h.confidence)}) for h in known.hypotheses]
    return dataclasses.replace(known, evidence=(*known.evidence, *more),
                               hypotheses=tuple(sorted(weighed, key=lambda h: -h.confidence)))


def open_case(report: Report, found: Round) -> bool:
    """True where there is something to explain: the instruments saw a fault, or a checked claim speaks of one."""
    return bool(found.proven) or report.seen.verdict.status != "healthy"


def not_sent(asked_for: Iterable[HandOver], found: Round, who: str) -> tuple[Assignment, ...]:
    """Specialists who are asked for and were not sent yet, each once."""
    sent = {w.who for w in found.works}
    wanted = {h.agent: h.question for h in asked_for if h.agent in SPECIALISTS and h.agent not in sent}
    return tuple(Assignment(agent, f"asked by {who}: {question}") for agent, question in wanted.items())[:MOST]
