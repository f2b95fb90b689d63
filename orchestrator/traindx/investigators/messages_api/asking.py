"""Asks over the Messages API with the `anthropic` package: for machines where the CLI cannot be installed.

The budget is in dollars where a person says what a token costs (`TRAINDX_TOKEN_PRICES`), else in tokens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from traindx.answer_schema import shape
from traindx.investigators.claude_code.asking import Asker, Heard
from traindx.investigators.claude_code.conversation import Helper, Question, Thread
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.guard import STRUCTURED_OUTPUT
from traindx.investigators.messages_api import client as api
from traindx.investigators.messages_api.conversing import Conversation
from traindx.investigators.messages_api.toolbox import Toolbox
from traindx.investigators.messages_api.usage import Prices
from traindx.notices import Notice, working
from traindx.policy import Verdict

FORM = f"Answer through {STRUCTURED_OUTPUT}, one object with each of these keys: "
COUNTING_SECONDS = 10.0
"""For counting the tokens of a prompt; without an answer they are estimated."""


@dataclass
class ApiAsker(Asker):
    """One conversation is a loop of requests in this process."""

    backend: ClassVar[str] = "api"
    _uncounted: bool = False
    """Counting failed once in this session: estimated from then on."""

    @property
    def prices(self) -> Prices | None:
        """What tokens cost, where a person said so."""
        return Prices.of(self.settings.token_prices)

    @property
    def most_each(self) -> float:
        """Dollars, or tokens where nobody said what one costs."""
        return self.settings.dollars_each if self.prices is not None else float(self.settings.tokens_each)

    def failure_of(self, error: Exception) -> Failure:
        """The state behind an exception of the package."""
        return api.of_exception(error)

    def worth(self, tokens: int) -> str:
        """What a prompt of so many tokens costs to send once."""
        return f", ${self.prices.dollars({'input_tokens': tokens}):.4f}" if self.prices is not None else ""

    async def first_tokens(self, question: Question) -> tuple[int, str]:
        """Counted by the API before anything is paid for; estimated where it does not count."""
        if not self._uncounted:
            try:
                async with api.client(self.settings) as client:
                    return await asyncio.wait_for(self._counted(client, question), COUNTING_SECONDS), "exactly"
            except asyncio.CancelledError:
                raise
            except Exception:  # noqa: BLE001 - Bedrock counts nothing, a key may be wrong: the question will tell
                self._uncounted = True
        return self.estimated(question), "about"

    async def _counted(self, client: Any, question: Question) -> int:
        talk = self._talk(client, question, Heard(), 0.0)
        asked = {"role": "user", "content": talk.begun()}
        counted = await client.messages.count_tokens(
            model=api.model_of(question.model, self.settings), **talk.fixed(), messages=[*talk.messages, asked])
        return int(counted.input_tokens)

    async def converse(self, question: Question, most: float, heard: Heard) -> None:
        """Hold it, and close the connections at its end."""
        heard.spent = 0.0
        if not api.model_of(question.model, self.settings):
            heard.over, heard.failure = True, Failure("no-model", "nobody names a model")
            return
        try:
            async with api.client(self.settings) as client:
                talk = self._talk(client, question, heard, most)
                ended = await talk.run()
        except asyncio.CancelledError:
            heard.spent = None  # a request was on its way: what it took is not known
            raise
        heard.fetched, heard.over = [*talk.fetched, *heard.fetched], True
        heard.answer, heard.failure = (None, ended) if isinstance(ended, Failure) else (ended, None)
        if heard.failure is None:
            self.conversations.keep_thread(question, Thread(messages=tuple(talk.messages)))

    def _talk(self, client: Any, question: Question, heard: Heard, most: float, *, form: bool = True) -> Conversation:
        """A conversation about a question. `form`: whether the form of the answer has to be shown with it."""

        def told(tool: str, arguments: Mapping[str, Any], verdict: Verdict) -> None:
            self.hear(working(question.who, tool, verdict.allow))
            if not verdict.allow:
                heard.denied.append(f"{tool}: {verdict.reason}")
                self.conversations.note(question, "denied", {"tool": tool, "arguments": dict(arguments),
                                                             "reason": verdict.reason})

        def account(used: dict[str, int]) -> Failure | None:
            return self._account(question, heard, most, used)

        places = asyncio.Semaphore(self.settings.concurrency)

        async def send(kind: str, prompt: str) -> tuple[str, bool]:
            helper = next(h for h in question.helpers if h.name == kind)  # the policy refuses any other
            async with places:
                return await self._sent(client, helper, prompt, heard, most)

        thread = self.conversations.thread(question) if question.thread else Thread()
        wanted = f"\n\n{FORM}{shape(question.schema)}"
        shown = replace(question, prompt=question.prompt + (wanted if form and not thread.messages else ""))
        return Conversation(
            client, api.model_of(question.model, self.settings), shown,
            Toolbox(question, self.workspace, self.scope, self.phase, told, self.bench, send), self.settings.effort,
            question.turns or self.settings.turns_each, self.settings.retries, account,
            lambda kind, body: self.conversations.note(question, kind, body),
            lambda text: self.hear(Notice("said", question.who, text)), list(thread.messages))

    async def _sent(self, client: Any, helper: Helper, prompt: str, heard: Heard, most: float) -> tuple[str, bool]:
        """A specialist's conversation within its sender's; its report, checked."""
        question = Question(helper.name, helper.system, prompt, helper.schema, helper.tools, helper.model)
        own = Heard()
        left = max(most - (heard.spent or 0.0), 0.0)
        talk = self._talk(client, question, own, min(left / 2, self.most_each), form=False)  # its prompt shows it
        ended = await talk.run()
        heard.tokens += own.tokens
        heard.dollars += own.dollars
        heard.spent = (heard.spent or 0.0) + (own.spent or 0.0)
        heard.fetched += talk.fetched
        self.pages.update(talk.fetched)
        heard.denied += own.denied
        if isinstance(ended, Failure):
            return f"{helper.name} brought no answer ({ended.state}: {ended.detail})", True
        text = json.dumps(ended)
        return (self.reported(helper.name, text) if self.reported is not None else text), False

    def _account(self, question: Question, heard: Heard, most: float, used: dict[str, int]) -> Failure | None:
        """Adds one answer to the bill. The next request costs at least what this one did: it must still fit."""
        tokens = sum(used.values())
        dollars = self.prices.dollars(used) if self.prices is not None else 0.0
        took = dollars if self.prices is not None else float(tokens)
        heard.tokens += tokens
        heard.dollars += dollars
        heard.spent = (heard.spent or 0.0) + took
        self.hear(Notice("working", question.who, tokens=tokens, dollars=dollars))
        if heard.spent + took <= most:
            return None
        spent = f"{self.purse.amount(heard.spent)} of {self.purse.amount(most)} are spent"
        return Failure("budget-each", f"{spent}, and one more answer takes about {self.purse.amount(took)}")
