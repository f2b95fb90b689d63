"""Puts one question to Claude and comes back with an answer in the asked form, or with the state that it ended in.

Read-only by construction: the tools are Read, Grep, Glob and the instruments, no setting of the project or the user is
loaded, the hook judges every call, and the CLI is disconnected whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.investigators.claude_code import failures, instruments
from traindx.investigators.claude_code.conversation import Conversations, Kept, Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.guard import SECONDS, guard, hooks
from traindx.investigators.claude_code.purse import Purse
from traindx.investigators.claude_code.sdk import sdk
from traindx.policy import Scope, Verdict
from traindx.settings import Settings

READING = ("Read", "Grep", "Glob")
WEB = ("WebSearch", "WebFetch")
NEVER = ("Bash", "Write", "Edit", "NotebookEdit", "Agent", "Task", "Skill", "SlashCommand", "KillShell", "BashOutput")
"""Named besides not being offered, so that no default of a later CLI brings one back."""

BUFFER = 32 * 2**20
"""Bytes of one message from the CLI; the SDK's default of 1 MiB is less than a long file."""

_ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}


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
class _Heard:
    """What one conversation brought."""

    result: Any = None
    denied: list[str] = field(default_factory=list)
    asked_for: dict[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)


@dataclass
class Asker:
    """Asks within one session's scope and purse. `say` hears one line for each thing that happens."""

    workspace: Path
    settings: Settings
    scope: Scope
    conversations: Conversations
    purse: Purse
    say: Callable[[str], None] = lambda line: None
    phase: str = "gather"

    async def ask(self, question: Question, seconds: float, dollars: float = math.inf) -> Reply:
        """The reply, within these seconds and dollars. Raises only StateNotWritable and CancelledError."""
        kept = self.conversations.recall(question)
        if kept is not None:
            self.say(f"{question.who}: answered earlier in this session")
            return Reply(question.who, kept.answer, tokens=kept.tokens, fetched=kept.fetched, remembered=True)
        deadline = time.monotonic() + seconds
        self.say(f"{question.who}: asked")
        reply = await self._once(question, seconds, dollars)
        left = deadline - time.monotonic()
        if reply.failure is not None and reply.failure.state in failures.AGAIN and left > 1.0:
            self.say(f"{question.who}: {reply.failure.detail}; asked once more")
            reply = await self._once(question, left, dollars)
        self.say(_told(reply))
        return reply

    async def _once(self, question: Question, seconds: float, most: float) -> Reply:
        aside = self.purse.set_aside(min(most, self.settings.dollars_each))
        if aside is None:
            spent = f"${self.purse.spent:.2f} of ${self.purse.total:.2f} are spent or set aside"
            return Reply(question.who, failure=Failure("budget-all", spent))
        number, dollars = aside
        started, heard, cost = time.monotonic(), _Heard(), None
        try:
            failure = await self._heard(question, seconds, dollars, heard)
            cost = heard.result.total_cost_usd if heard.result is not None else None
        finally:
            self.purse.settle(number, cost)
        took = time.monotonic() - started
        reply = Reply(question.who, heard.result.structured_output if failure is None else None, failure,
                      cost or 0.0, _tokens(heard.result), took, tuple(heard.fetched), tuple(heard.denied))
        if reply.answer is not None:
            self.conversations.keep(question, Kept(reply.answer, reply.dollars, reply.tokens, took, reply.fetched))
        return reply

    async def _heard(self, question: Question, seconds: float, dollars: float, heard: _Heard) -> Failure | None:
        """Why there is no answer, or None; the conversation is kept as it comes."""
        self.conversations.note(question, "asked", {"system": question.system, "prompt": question.prompt,
                                                    "tools": question.tools, "model": question.model})
        try:
            await asyncio.wait_for(self._converse(question, dollars, heard), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            return self._ended(question, Failure("late", f"no answer within {seconds:.0f} s"))
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises ends in a state
            if heard.result is None:
                return self._ended(question, failures.of_exception(error))
        if heard.result is None:
            return self._ended(question, Failure("cli-broke-off", "the conversation ended without a result"))
        return self._ended(question, failures.of_result(heard.result))

    def _ended(self, question: Question, failure: Failure | None) -> Failure | None:
        self.conversations.note(question, "ended", "answered" if failure is None else str(failure))
        return failure

    async def _converse(self, question: Question, dollars: float, heard: _Heard) -> None:
        client = sdk().ClaudeSDKClient(self.options(question, dollars, heard))
        try:
            await client.connect()
            await client.query(question.prompt)
            async for message in client.receive_response():
                self._hear(question, message, heard)
        finally:
            with contextlib.suppress(Exception):  # the conversation is over; how its process ends changes nothing
                await client.disconnect()

    def _hear(self, question: Question, message: Any, heard: _Heard) -> None:
        self.conversations.note(question, type(message).__name__, message)
        if type(message).__name__ == "ResultMessage":
            heard.result = message
        content = getattr(message, "content", None)
        for block in content if isinstance(content, list) else ():
            name = type(block).__name__
            if name == "ToolUseBlock" and block.name == "WebFetch":
                heard.asked_for[block.id] = str(block.input.get("url", ""))
            elif name == "ToolResultBlock" and not block.is_error and block.tool_use_id in heard.asked_for:
                heard.fetched.append(heard.asked_for[block.tool_use_id])

    def options(self, question: Question, dollars: float, heard: _Heard) -> Any:
        """The SDK's options: nothing that writes, nothing from the project's or the user's settings."""

        def told(tool: str, arguments: Mapping[str, Any], verdict: Verdict, agent: str) -> None:
            if not verdict.allow:
                heard.denied.append(f"{tool}: {verdict.reason}")
                self.conversations.note(question, "denied", {"tool": tool, "arguments": arguments, "agent": agent,
                                                             "reason": verdict.reason})

        return sdk().ClaudeAgentOptions(
            tools=[t for t in question.tools if not t.startswith("mcp__")],
            allowed_tools=list(question.tools),
            disallowed_tools=[t for t in NEVER if t not in question.tools],
            system_prompt=question.system,
            mcp_servers=instruments.servers(self.workspace, question.tools),
            strict_mcp_config=True,
            permission_mode="dontAsk",
            setting_sources=[],
            skills=[],
            plugins=[],
            cwd=str(self.workspace),
            model=question.model or None,
            effort=self.settings.effort or None,
            max_turns=self.settings.turns_each,
            max_budget_usd=dollars,
            max_buffer_size=BUFFER,
            verbatim_prompts=True,
            hooks=hooks(guard(self.phase, self.scope, told), SECONDS),
            output_format={"type": "json_schema", "schema": dict(question.schema)},
            env={**_ENVIRONMENT, "CLAUDE_CODE_MAX_RETRIES": str(self.settings.retries), **self.settings.environment},
            cli_path=self.settings.cli_path or None,
            extra_args={"no-session-persistence": None},
            stderr=lambda line: self.conversations.note(question, "stderr", line),
        )


def _tokens(result: Any) -> int:
    usage = getattr(result, "usage", None) or {}
    return sum(int(v) for k, v in usage.items() if k.endswith("_tokens") and isinstance(v, int))


def _told(reply: Reply) -> str:
    how = "answered" if reply.failure is None else str(reply.failure)
    refused = f", {len(reply.denied)} tool calls refused" if reply.denied else ""
    return f"{reply.who}: {how} ({reply.seconds:.0f} s, {reply.tokens:,} tokens, ${reply.dollars:.4f}{refused})"
