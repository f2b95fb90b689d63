"""The specialists of one round: sent by the delegation table, at work side by side, their answers checked.

What fails or comes late is named, not waited for.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traindx.agents import Agent
from traindx.delegation import Assignment, specialists_for
from traindx.investigators.base import Case
from traindx.investigators.claude_code import failures, prompts
from traindx.investigators.claude_code.answers import HandOver, Report, Row, read
from traindx.investigators.claude_code.asking import Asker, Reply
from traindx.investigators.claude_code.checking import Checker, Dropped, Proven
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.failures import Failure
from traindx.model import Evidence
from traindx.notices import Notice
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.examine import Examination

_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_READ_FOR_IMPORTS = 200_000
AFTER = 2
"""Questions that must still be paid for after a round: the lead's and the adversary's."""


@dataclass(frozen=True)
class Work:
    """What one specialist brought, after the check."""

    who: str
    answer: str = ""
    proven: tuple[Proven, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    rows: tuple[Row, ...] = ()
    unknown: tuple[str, ...] = ()
    hand_over: tuple[HandOver, ...] = ()
    failure: Failure | None = None
    dollars: float = 0.0
    tokens: int = 0


@dataclass(frozen=True)
class Round:
    """All that came of one round."""

    works: tuple[Work, ...] = ()

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The claims that stand; two specialists at one line are two."""
        return tuple(p for w in self.works for p in w.proven)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The claims that did not stand."""
        return tuple(d for w in self.works for d in w.dropped)

    @property
    def failed(self) -> tuple[Work, ...]:
        """Those who brought no answer."""
        return tuple(w for w in self.works if w.failure is not None)

    def told(self) -> str:
        """The round in lines, for the lead."""
        return "\n".join(line for w in self.works for line in _lines(w))


def _lines(work: Work) -> Iterable[str]:
    if work.failure is not None:
        yield f"{work.who}: no answer ({work.failure.state})"
        return
    yield f"{work.who}: {work.answer}"
    for p in work.proven:
        side = "for" if p.supports else "against"
        yield f"  checked, {side} {p.failure_mode or 'no named mode'}: {p.claim} | {p.place}: {p.value}"
    if work.dropped:
        yield f"  {len(work.dropped)} claims did not stand the check and were dropped"


def frameworks(code: Sequence[Path]) -> tuple[str, ...]:
    """What the program imports, by its files' text."""
    found: set[str] = set()
    for path in code[:50]:
        try:
            with path.open("rb") as file:
                found.update(_IMPORTED.findall(file.read(_READ_FOR_IMPORTS).decode("utf-8", "replace")))
        except OSError:
            continue
    return tuple(sorted(found))


def assignments(seen: Examination, case: Case) -> tuple[Assignment, ...]:
    """Who is sent: the table's choice."""
    words = " ".join((case.symptom.observed, *case.feedback))
    return specialists_for(seen.findings, words, frameworks(seen.code))


@dataclass
class Team:
    """Sends specialists within the asker's budget."""

    asker: Asker
    agents: dict[str, Agent]
    concurrency: int
    seconds_each: float
    model: str = ""
    web: bool = False
    hopeless: Failure | None = None
    """Why nobody else needs to be asked."""
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.concurrency)

    async def ask(self, question: Question, seconds: float, most: float = math.inf) -> Reply:
        """One question, when its turn has come and while there is hope."""
        begun = time.monotonic()
        try:
            await asyncio.wait_for(self._places.acquire(), max(seconds, 0.001))
        except (TimeoutError, asyncio.TimeoutError):
            return Reply(question.who, failure=Failure("late", f"its turn did not come within {seconds:.0f} s"))
        try:
            if self.hopeless is not None:
                return Reply(question.who, failure=Failure("not-asked", self.hopeless.detail))
            left = min(self.seconds_each, seconds - (time.monotonic() - begun))
            reply = await self.asker.ask(question, max(left, 0.001), most)
        finally:
            self._places.release()
        if reply.failure is not None and reply.failure.state in failures.HOPELESS:
            self.hopeless = reply.failure
        return reply

    async def round(self, case: Case, sent: Sequence[Assignment], seconds: float) -> Round:
        """All of them at the same time, each within `seconds` and an equal share of what may still be spent."""
        share = self.asker.purse.left / (len(sent) + AFTER)
        asked = [prompts.specialist(self.agents[a.agent], case, a.reason, self.model, self.web) for a in sent]
        replies = await asyncio.gather(*(self.ask(q, seconds, share) for q in asked))
        return Round(tuple([await asyncio.to_thread(self.check, case, reply) for reply in replies]))

    def check(self, case: Case, reply: Reply) -> Work:
        """What of a reply stands."""
        if reply.answer is None:
            return Work(reply.who, failure=reply.failure, dollars=reply.dollars, tokens=reply.tokens)
        report = read(Report, reply.answer)
        if isinstance(report, str):
            return Work(reply.who, failure=Failure("no-answer", report), dollars=reply.dollars, tokens=reply.tokens)
        checker = self.checker(case.evidence, reply.fetched)
        proven, dropped = checker.items(reply.who, report.evidence)
        rows, bad = [], []
        for row in report.triangulation:
            wrong = checker.row(row)
            rows += [row] if wrong is None else []
            bad += [Dropped(reply.who, row.finding, wrong)] if wrong is not None else []
        self.asker.hear(Notice("checked", reply.who, f"{len(proven)} claims stand, {len(dropped) + len(bad)} were "
                                                     "dropped"))
        for p in proven:
            self.asker.hear(Notice("evidence", reply.who, f"{p.place}: {p.claim}"))
        return Work(reply.who, report.answer, proven, (*dropped, *bad), tuple(rows), report.unknown, report.hand_over,
                    dollars=reply.dollars, tokens=reply.tokens)

    def checker(self, evidence: Iterable[Evidence], fetched: Iterable[str] = ()) -> Checker:
        """Checks against the workspace, the session's evidence and what was fetched."""
        catalog = load_catalog()
        known = {*catalog, *(s.where for m in catalog.values() for s in m.sources), *fetched}
        return Checker(self.asker.scope, {e.id: e for e in evidence}, frozenset(known))
