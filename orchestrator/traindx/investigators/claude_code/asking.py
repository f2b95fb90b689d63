"""Puts one question to Claude and comes back with an answer in the asked form, or with the state that it ended in.

What every way of asking shares: an answer that was paid for is read from the session's folder, an amount is set aside
before a question is put and settled after it, the conversation is kept, and whatever happens ends in a state. How the
conversation itself is held is `cli.py` (the Agent SDK and its CLI) or `messages_api/` (the Messages API alone).
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from traindx.investigators.bench.bench import Bench
from traindx.investigators.claude_code import failures
from traindx.investigators.claude_code.conversation import Conversations, Kept, Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.guard import Reported
from traindx.investigators.claude_code.purse import Purse
from traindx.notices import Hear, Notice, nobody
from traindx.policy import Scope
from traindx.settings import Settings

SEND = "Agent"
"""The tool that sends a specialist."""
WEB = ("WebSearch", "WebFetch")


@dataclass(frozen=True)
class Reply:
    """What came of a question: an answer or a failure, and what it took."""

    who: str
    answer: dict[str, Any] | None = None
    failure: Failure | None = None
    dollars: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    fetched: tuple[str, ...] = ()
    """Addresses that were really fetched."""
    denied: tuple[str, ...] = ()
    """Tool calls that the policy refused."""
    remembered: bool = False
    """The answer was paid for earlier and read from the session's folder."""


@dataclass
class Heard:
    """What one conversation brought so far."""

    answer: dict[str, Any] | None = None
    over: bool = False
    """The other side ended it: `failure` says how, None with an answer."""
    failure: Failure | None = None
    spent: float | None = None
    """In the purse's unit; None while that is not known."""
    dollars: float = 0.0
    before: float = 0.0
    """Dollars that the thread had cost before this question."""
    tokens: int = 0
    denied: list[str] = field(default_factory=list)
    asked_for: dict[str, str] = field(default_factory=dict)
    """Addresses by the id of the call that asked for them."""
    fetched: list[str] = field(default_factory=list)


@dataclass
class Asker:
    """Asks within one session's scope and purse. `hear` is told each thing that happens."""

    workspace: Path
    settings: Settings
    scope: Scope
    conversations: Conversations
    purse: Purse
    hear: Hear = nobody
    phase: str = "gather"
    bench: Bench | None = None
    """Search, probes and instruments whose outputs are kept."""
    reported: Reported | None = None
    """Told of a specialist's report; returns what its sender is told of it."""
    pages: set[str] = field(default_factory=set)
    """Addresses that were really fetched, by anybody."""
    backend: ClassVar[str] = ""

    @property
    def most_each(self) -> float:
        """What one question may take, in the purse's unit."""
        return self.settings.dollars_each

    async def converse(self, question: Question, most: float, heard: Heard) -> None:
        """Hold the conversation, at most for this amount, and fill in what it brings."""
        raise NotImplementedError

    def estimated(self, question: Question) -> int:
        """Tokens that the question has at least, without asking anybody."""
        from traindx.agents import estimate_tokens

        return estimate_tokens(question.system) + estimate_tokens(question.prompt)

    async def first_tokens(self, question: Question) -> tuple[int, str]:
        """Tokens of what is sent first, and whether they were counted or estimated."""
        return self.estimated(question), "about"

    async def ask(self, question: Question, seconds: float, most: float = math.inf) -> Reply:
        """The reply, within these seconds and this amount (by default what one question may take).

        Raises only StateNotWritable and CancelledError.
        """
        kept = self.conversations.recall(question)
        if kept is not None:
            self.hear(Notice("answered", question.who, "answered earlier in this session"))
            return Reply(question.who, kept.answer, tokens=kept.tokens, fetched=kept.fetched, remembered=True)
        deadline = time.monotonic() + seconds
        reply = await self._once(question, seconds, most)
        left = deadline - time.monotonic()
        if reply.failure is not None and reply.failure.state in failures.AGAIN and left > 1.0:
            self.hear(Notice("said", question.who, f"{reply.failure.detail}; asked once more"))
            reply = await self._once(question, left, most)
        self.hear(_told(reply))
        return reply

    async def _once(self, question: Question, seconds: float, most: float) -> Reply:
        aside = self.purse.set_aside(self.most_each if math.isinf(most) else most)
        if aside is None:
            return Reply(question.who, failure=Failure("budget-all", self.purse.told))
        number, amount = aside
        started, heard = time.monotonic(), Heard()
        try:
            failure = await self._heard(question, seconds, amount, heard)
        finally:
            self.purse.settle(number, heard.spent)
        took = time.monotonic() - started
        reply = Reply(question.who, heard.answer if failure is None else None, failure, heard.dollars, heard.tokens,
                      took, tuple(heard.fetched), tuple(heard.denied))
        if reply.answer is not None:
            self.conversations.keep(question, Kept(reply.answer, reply.dollars, reply.tokens, took, reply.fetched))
        return reply

    async def _heard(self, question: Question, seconds: float, most: float, heard: Heard) -> Failure | None:
        """Why there is no answer, or None; the conversation is kept as it comes."""
        self.conversations.note(question, "asked", {"system": question.system, "prompt": question.prompt,
                                                    "tools": question.tools, "model": question.model})
        try:
            await asyncio.wait_for(self._begun(question, most, heard), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            return self._ended(question, Failure("late", f"no answer within {seconds:.0f} s"))
        except Exception as error:  # noqa: BLE001 - whatever the other side raises ends in a state
            if not heard.over:
                return self._ended(question, self.failure_of(error))
        if not heard.over:
            return self._ended(question, Failure("cli-broke-off", "the conversation ended without a result"))
        return self._ended(question, heard.failure)

    async def _begun(self, question: Question, most: float, heard: Heard) -> None:
        tokens, how = await self.first_tokens(question)
        self.hear(Notice("asked", question.who, f"asked ({how} {tokens:,} tokens to begin with{self.worth(tokens)})"))
        await self.converse(question, most, heard)

    def worth(self, tokens: int) -> str:
        """What so many tokens of a prompt cost, in words; "" where that is not known before."""
        return ""

    def failure_of(self, error: Exception) -> Failure:
        """The state behind an exception."""
        return failures.of_exception(error)

    def _ended(self, question: Question, failure: Failure | None) -> Failure | None:
        self.conversations.note(question, "ended", "answered" if failure is None else str(failure))
        return failure


def _told(reply: Reply) -> Notice:
    how = "answered" if reply.failure is None else str(reply.failure)
    refused = f", {len(reply.denied)} tool calls refused" if reply.denied else ""
    cost = f", ${reply.dollars:.4f}" if reply.dollars else ""
    text = f"{how} ({reply.seconds:.0f} s, {reply.tokens:,} tokens{cost}{refused})"
    return Notice("answered" if reply.failure is None else "failed", reply.who, text)
