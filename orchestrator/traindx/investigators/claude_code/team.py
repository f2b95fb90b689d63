"""Puts the questions of a session, while there is time, money and hope."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.delegation import Assignment, specialists_for
from traindx.investigators.base import Case
from traindx.investigators.claude_code import failures
from traindx.investigators.claude_code.asking import Asker, Reply
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.failures import Failure
from traindx_tools.examine import Examination

_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_READ_FOR_IMPORTS = 200_000


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
    """Asks within the asker's budget. `hopeless`: why nobody else needs to be asked."""

    asker: Asker
    hopeless: Failure | None = None

    async def ask(self, question: Question, seconds: float, most: float = math.inf) -> Reply:
        """One question, while there is hope."""
        if self.hopeless is not None:
            return Reply(question.who, failure=Failure("not-asked", self.hopeless.detail))
        if seconds <= 0:
            return Reply(question.who, failure=Failure("late", "the time for specialists is over"))
        reply = await self.asker.ask(question, seconds, most)
        if reply.failure is not None and reply.failure.state in failures.HOPELESS:
            self.hopeless = reply.failure
        return reply
