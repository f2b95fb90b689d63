"""The investigator with a language-model lead: it looks for itself, sends specialists, and an adversary attacks what it
found; the instruments measure, and the arithmetic on what was checked decides.

The offline investigator runs once. Its findings are evidence, its facts and its guess are told to the lead after the
lead's own first look, and where Claude cannot be reached, fails or runs out of budget, its result is what the session
gets, with what is missing named in fields. The model never decides whether something is written: the gate, the strikes
and the workspace are the session's.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from traindx.agents import LEAD, SPECIALISTS, load_agents
from traindx.handed_over import hand_over
from traindx.investigators.base import Case, Conclusion, Gathered, Hypotheses
from traindx.investigators.bench import bench as bench_
from traindx.investigators.bench.bench import EXPERIMENT, Bench, full_name
from traindx.investigators.claude_code import deliberating, prompts, reports, weighing
from traindx.investigators.claude_code.askers import asker_of
from traindx.investigators.claude_code.conversation import keep_settings
from traindx.investigators.claude_code.deliberating import Deliberation
from traindx.investigators.claude_code.instruments import names
from traindx.investigators.claude_code.leading import LeadThread
from traindx.investigators.claude_code.team import Team
from traindx.investigators.offline import OfflineInvestigator, with_what_was_said
from traindx.model import Diagnosis, Hypothesis, Symptom
from traindx.notices import Hear, Notice, nobody
from traindx.policy import Scope
from traindx.settings import Settings

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
        """As the engine ranks them. There is no quick path: where the engine is surest, nobody else had looked."""
        return dataclasses.replace(await self.offline.hypothesize(case), quick=False)

    async def gather(self, case: Case) -> Gathered:
        """The instruments, then the lead with its specialists and the adversary; what they conclude is kept."""
        gathered = await self.offline.gather(case)
        known = dataclasses.replace(case, evidence=(*case.evidence, *gathered.evidence), hypotheses=gathered.hypotheses)
        conclusion, work = await self._concluded(known)
        deliberating.keep(case, conclusion)
        return Gathered((*gathered.evidence, *work.evidence), _weighed(gathered.hypotheses, work))

    async def diagnose(self, case: Case) -> Conclusion:
        """What was concluded, as it was challenged; concluded anew where that is not there any more."""
        conclusion = deliberating.kept(case)
        if conclusion is None:
            conclusion, _ = await self._concluded(case)
        return with_what_was_said(conclusion, case) if isinstance(conclusion, Diagnosis) else conclusion

    async def _concluded(self, case: Case) -> tuple[Conclusion, Deliberation]:
        team, s = self.team(case), self.settings
        tools = prompts.tools_of(case.allow_run, s.web)
        agents = load_agents()
        theirs = tuple(t for t in prompts.tools_of(case.allow_run) if t != full_name(EXPERIMENT))
        helpers = tuple(prompts.helper(agents[n], str(case.workspace), s.specialist_model or s.model, theirs, s.web)
                        for n in SPECIALISTS)
        lead = LeadThread(team, agents[LEAD], case.scratch, prompts.frame(str(case.workspace)),
                          agents[LEAD].output_schema, tools, helpers, prompts.opening(agents[LEAD], case), s.model,
                          s.turns_lead)
        work = Deliberation(case, await self.offline.report(case), lead, team, tools, s.model, s.turns_each,
                            lambda: self._seconds(case), s.seconds_each)
        team.asker.reported = lambda who, text: self._reported(who, text, case, work)
        return await work.concluded(await self.offline.diagnose(case)), work

    def _reported(self, who: str, text: str, case: Case, work: Deliberation) -> str:
        """A specialist's report: kept as it is, and told to its sender with what of it stands."""
        report = reports.parsed(text)
        if isinstance(report, str):
            return f"{who}: no report in the asked form ({report}). Its words, unchecked:\n{prompts.data(text)}"
        reports.keep(case.scratch, who, report, work.team.asker.pages)
        found = reports.checked(who, report, work.checker())
        self.hear(Notice("checked", who, f"{len(found.proven)} claims stand, {len(found.dropped)} were dropped"))
        for p in found.proven:
            self.hear(Notice("evidence", who, f"{p.place}: {p.claim}"))
        return reports.told(found)

    def team(self, case: Case) -> Team:
        """Who asks in this session, with its purse, its conversations and its bench."""
        key = str(case.scratch)
        if key not in self._teams:
            asker = asker_of(case.workspace, self.settings, self._scope(case), case.scratch, self.hear,
                             bench=Bench(case.workspace, case.scratch, case.allow_run))
            keep_settings(case.scratch, self.settings)
            self._teams[key] = Team(asker)
        self._teams[key].asker.scope = self._scope(case)  # the person may have handed over more
        return self._teams[key]

    def _scope(self, case: Case) -> Scope:
        given = hand_over(case.artifacts, case.workspace, case.scratch / "evidence")
        return Scope(case.workspace, readable=given.paths, mcp_read_only=frozenset(names()), web=self.settings.web,
                     runs=bench_.run_names() if case.allow_run else frozenset(), helpers=frozenset(SPECIALISTS))

    def _seconds(self, case: Case) -> float:
        """What is left for specialists: of their own budget and of the session's."""
        if self._until is None:
            self._until = self.clock() + self.settings.seconds_all
        return max(min(self._until - self.clock(), case.seconds_left * SHARE_OF_STEP), 0.0)


def _weighed(hypotheses: tuple[Hypothesis, ...], work: Deliberation) -> tuple[Hypothesis, ...]:
    """The engine's hypotheses with what was checked weighed in."""
    ranked = weighing.weighed(work.report.seen.verdict.hypotheses, work.claims)
    sure = {h.mode.id: round(h.confidence, 3) for h in ranked}
    weighed = [h.model_copy(update={"confidence": sure.get(h.failure_mode, h.confidence)}) for h in hypotheses]
    return tuple(sorted(weighed, key=lambda h: -h.confidence))
