"""Asks through the Claude Agent SDK and its CLI.

Read-only towards the workspace by construction: the tools are Read and ours, which run code in the protected runner
alone; no setting of the project or the user is loaded, the hook judges every call, subagents' included, and the CLI is
disconnected whatever happens. A thread is resumed by the CLI's own id of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from traindx.investigators.claude_code import failures, instruments
from traindx.investigators.claude_code.asking import Asker, Heard
from traindx.investigators.claude_code.conversation import Question, Thread
from traindx.investigators.claude_code.guard import SECONDS, after, guard, hooks
from traindx.investigators.claude_code.launching import cli_path
from traindx.investigators.claude_code.retrying import hopeless
from traindx.investigators.claude_code.sdk import sdk
from traindx.notices import Notice, working
from traindx.policy import Verdict

NEVER = ("Bash", "Write", "Edit", "NotebookEdit", "Agent", "Task", "Skill", "SlashCommand", "KillShell", "BashOutput")
"""Named besides not being offered, so that no default of a later CLI brings one back."""
KINDS_OF_THE_CLI = ("claude", "Explore", "Plan", "general-purpose", "fork", "statusline-setup")
"""Its own kinds of subagents: refused by the policy, and taken from the list that the model reads."""
LOST = "no conversation found"
"""What the CLI says of a thread whose transcript is gone."""

INTERRUPT_SECONDS = 5.0

BUFFER = 32 * 2**20
"""Bytes of one message from the CLI; the SDK's default of 1 MiB is less than a long file."""

_ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}


@dataclass
class CliAsker(Asker):
    """One conversation is one process of the CLI."""

    backend: ClassVar[str] = "claude"

    async def converse(self, question: Question, most: float, heard: Heard) -> None:
        """Hold it; a thread whose transcript is gone begins anew, with what was said before in short."""
        thread = self.conversations.thread(question) if question.thread else Thread()
        try:
            await self._held(question, question.prompt, thread, most, heard)
        except Exception as error:
            if not thread.id or LOST not in str(error).lower():
                raise
            self.conversations.note(question, "lost", thread.id)
            anew = "\n\n".join(filter(None, (question.recap, question.prompt)))
            await self._held(question, anew, Thread(), most, heard)

    async def _held(self, question: Question, prompt: str, thread: Thread, most: float, heard: Heard) -> None:
        """One process of the CLI, seen off whatever happens."""
        heard.before = thread.dollars
        client = sdk().ClaudeSDKClient(self.options(question, most, heard, thread.id))
        try:
            await client.connect()
            await client.query(prompt)
            answered = False
            async for message in client.receive_response():
                self.listen(question, message, heard)
                answered = answered or type(message).__name__ == "AssistantMessage"
                failure = await hopeless(message, {**os.environ, **self.settings.environment})
                if failure is not None:
                    heard.over, heard.failure = True, failure
                    heard.spent = None if answered else 0.0
                    with contextlib.suppress(Exception):  # its next request waits for half a second only
                        await asyncio.wait_for(client.interrupt(), INTERRUPT_SECONDS)
                    return
        finally:
            with contextlib.suppress(Exception):  # the conversation is over; how its process ends changes nothing
                await client.disconnect()

    def listen(self, question: Question, message: Any, heard: Heard) -> None:
        """Take one message of the SDK in."""
        self.conversations.note(question, type(message).__name__, message)
        if type(message).__name__ == "ResultMessage":
            _take(message, heard)
            stands = Thread(str(message.session_id or ""), message.total_cost_usd or 0.0)
            self.conversations.keep_thread(question, stands)
            self.hear(Notice("working", question.who, tokens=heard.tokens, dollars=heard.dollars))
        content = getattr(message, "content", None)
        for block in content if isinstance(content, list) else ():
            name = type(block).__name__
            if name == "ToolUseBlock" and block.name == "WebFetch":
                heard.asked_for[block.id] = str(block.input.get("url", ""))
            elif name == "ToolResultBlock" and not block.is_error and block.tool_use_id in heard.asked_for:
                heard.fetched.append(heard.asked_for[block.tool_use_id])

    def options(self, question: Question, dollars: float, heard: Heard, resume: str = "") -> Any:
        """The SDK's options: nothing that writes, nothing from the project's or the user's settings."""
        callers: dict[str, str] = {}

        def told(tool: str, arguments: Mapping[str, Any], verdict: Verdict, agent: str) -> None:
            self.hear(working(agent or question.who, tool, verdict.allow))
            callers[_call(tool, arguments)] = agent
            if not verdict.allow:
                heard.denied.append(f"{tool}: {verdict.reason}")
                self.conversations.note(question, "denied", {"tool": tool, "arguments": arguments, "agent": agent,
                                                             "reason": verdict.reason})

        return sdk().ClaudeAgentOptions(
            tools=[t for t in question.tools if not t.startswith("mcp__")],
            allowed_tools=list(question.tools),
            disallowed_tools=[*(t for t in NEVER if t not in question.tools and not (t == "Task" and question.helpers)),
                              *(f"Agent({k})" for k in KINDS_OF_THE_CLI)],
            system_prompt=question.system,
            agents={h.name: sdk().AgentDefinition(
                description=h.description, prompt=h.system, tools=list(h.tools), model=h.model or None,
                maxTurns=self.settings.turns_each) for h in question.helpers} or None,
            mcp_servers=instruments.servers(
                self.workspace, {*question.tools, *(t for h in question.helpers for t in h.tools)}, self.bench,
                lambda tool, arguments: callers.get(_call(tool, arguments), "") or question.who),
            strict_mcp_config=True,
            permission_mode="dontAsk",
            setting_sources=[],
            skills=[],
            plugins=[],
            cwd=str(self.workspace),
            model=question.model or None,
            effort=self.settings.effort or None,
            max_turns=question.turns or self.settings.turns_each,
            resume=resume or None,
            max_budget_usd=dollars,
            max_buffer_size=BUFFER,
            verbatim_prompts=True,
            hooks=hooks(guard(self.phase, self.scope, told), SECONDS, after(self.reported, self.pages.add)),
            output_format={"type": "json_schema", "schema": dict(question.schema)},
            env={**_ENVIRONMENT, "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": str(self.settings.concurrency),
                 "CLAUDE_CODE_MAX_RETRIES": str(self.settings.retries), **self.settings.environment},
            cli_path=cli_path(self.settings.cli_path, self.conversations.folder),
            extra_args={} if question.thread else {"no-session-persistence": None},
            stderr=lambda line: self.conversations.note(question, "stderr", line),
        )


def _call(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True, default=str)}"


def _take(result: Any, heard: Heard) -> None:
    """What the SDK's ResultMessage tells."""
    heard.over, heard.failure = True, failures.of_result(result)
    heard.answer = result.structured_output if heard.failure is None else None
    total = result.total_cost_usd
    heard.spent = None if total is None else max(total - heard.before, 0.0)  # a resumed thread counts from its begin
    heard.dollars = heard.spent or 0.0
    usage = getattr(result, "usage", None) or {}
    heard.tokens = sum(int(v) for k, v in usage.items() if k.endswith("_tokens") and isinstance(v, int))
