"""The lead's conversation: one thread for a whole session, first blind, then with facts, then with the engine's guess.

What came since (a person's words, a strike, an adversary's objection) is said in the same thread, so that nothing is
sent and paid for again. Each answer is kept under the names of what was said; after a crash only what is missing is
said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.agents import Agent
from traindx.durable import write_state
from traindx.investigators.claude_code import prompts
from traindx.investigators.claude_code.answers import Lead, read
from traindx.investigators.claude_code.asking import SEND, Reply
from traindx.investigators.claude_code.conversation import FOLDER, Helper, Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.redaction import redacted_json
from traindx.investigators.claude_code.team import Team

THREAD = "lead"
NAME = "lead.json"
LOOK, FACTS, GUESS = "look", "facts", "guess"
_RECALLED = 6_000
"""Characters of one earlier answer that are told where the transcript is gone."""


def key_of(news: str) -> str:
    """The name of something that is said once."""
    return f"news-{hashlib.sha256(news.encode('utf-8', 'replace')).hexdigest()[:12]}"


def keyed(news: Iterable[str]) -> dict[str, str]:
    """Each by its name, in order. The same words said again (a second fix that failed alike) are news again, and say
    so: an equal question would be answered by what was answered before."""
    said: dict[str, str] = {}
    for text in news:
        name = key_of(text)
        again = sum(key == name or key.startswith(f"{name}-") for key in said)
        said[f"{name}-{again + 1}" if again else name] = f"{text} (said again: {again + 1})" if again else text
    return said


@dataclass
class LeadThread:
    """The thread of the session in `scratch`. `failure`: why the last thing that was said has no answer."""

    team: Team
    agent: Agent
    scratch: Path
    system: str
    schema: dict[str, Any]
    tools: tuple[str, ...]
    helpers: tuple[Helper, ...]
    opening: str = ""
    """The role and the case, for a conversation that has to begin anew."""
    model: str = ""
    turns: int = 40
    failure: Failure | None = None
    _said: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._said = _kept(self.scratch)

    def knows(self, key: str) -> bool:
        """True where this was said and answered."""
        return key in self._said

    @property
    def begun(self) -> bool:
        """True where anything was answered."""
        return bool(self._said)

    @property
    def last(self) -> Lead | None:
        """The lead's last answer in its form."""
        for answer in reversed(self._said.values()):
            found = read(Lead, answer)
            if isinstance(found, Lead):
                return found
        return None

    async def say(self, keys: Sequence[str], prompt: str, seconds: float, most: float) -> bool:
        """Say it where it was not said yet; True where there is an answer. Raises StateNotWritable."""
        new = [k for k in keys if not self.knows(k)]
        if not new:
            return True
        reply = await self.team.ask(self._question(prompt), seconds, most)
        if reply.answer is None or not isinstance(read(Lead, reply.answer), Lead):
            self.failure = reply.failure or _no_form(reply)
            return False
        self.failure = None
        for key in new:
            self._said.pop(key, None)
            self._said[key] = reply.answer
        self._keep()
        return True

    def mark(self, keys: Iterable[str]) -> None:
        """These were part of what was said already. Raises StateNotWritable."""
        new = [k for k in keys if k not in self._said]
        if self._said and new:
            self._said = {**{k: {} for k in new}, **self._said}  # before: the last answer stays the last
            self._keep()

    def _keep(self) -> None:
        text = json.dumps(redacted_json(list(self._said.items())), ensure_ascii=True)
        write_state(self.scratch / FOLDER / NAME, text.encode("ascii"))

    def _question(self, prompt: str) -> Question:
        before = [json.dumps(a)[:_RECALLED] for a in list(self._said.values())[-2:]]
        tools = (*self.tools, SEND) if self.helpers else self.tools
        recap = prompts.recap(self.opening, before)
        return Question(THREAD, self.system, prompt, self.schema, tools, self.model, THREAD, recap, self.helpers,
                        self.turns)


def _no_form(reply: Reply) -> Failure:
    found = read(Lead, reply.answer or {})
    return Failure("no-answer", found if isinstance(found, str) else "no answer")


def _kept(scratch: Path) -> dict[str, dict[str, Any]]:
    try:
        kept = json.loads((scratch / FOLDER / NAME).read_text(encoding="ascii"))
        return {str(key): dict(answer) for key, answer in kept}
    except (OSError, ValueError, TypeError):
        return {}
