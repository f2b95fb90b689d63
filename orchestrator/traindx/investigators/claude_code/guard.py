"""The hook before every tool call, subagents' included: the one predicate of `policy.py`, and nothing beside it.

It is registered with `on_failure="block"`, so that a hook that raises, answers nothing or takes too long denies. The
matcher names no tool: every call comes here. A second hook takes keys out of what a tool brought before the model sees
it: a file that may be read can still hold one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from traindx.investigators.bench import bench
from traindx.investigators.claude_code.redaction import redacted_alike
from traindx.investigators.claude_code.sdk import sdk
from traindx.policy import Scope, Verdict, allowed

SECONDS = 30.0
"""For one judgement; a workspace of 20,000 files is searched for secrets in far less."""

SEARCH = bench.full_name(bench.SEARCH)
"""Judged as the search and the list of files that it is."""

STRUCTURED_OUTPUT = "StructuredOutput"
"""The CLI's own tool that hands an answer over. It reaches nothing, and the policy need not know it."""

Hook = Callable[[Mapping[str, Any], "str | None", Any], Awaitable[dict[str, Any]]]
Told = Callable[[str, Mapping[str, Any], Verdict, str], None]
"""Called with the tool, its arguments, the verdict and the subagent's kind, "" for the main conversation."""
Reported = Callable[[str, str], str]
"""Called with a subagent's kind and its report; returns what its sender is told of it."""


def judge(tool: str, arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    """Whether the call may happen."""
    if tool == STRUCTURED_OUTPUT:
        return Verdict(True, "hands the answer over")
    if tool == SEARCH and tool in scope.mcp_read_only:
        return allowed("Glob" if arguments.get("names") else "Grep", arguments, phase, scope)
    return allowed(tool, arguments, phase, scope)


def guard(phase: str, scope: Scope, told: Told) -> Hook:
    """The hook for one phase and one scope."""

    async def before_tool(event: Mapping[str, Any], tool_use: str | None, context: Any) -> dict[str, Any]:
        tool, arguments = str(event["tool_name"]), event["tool_input"]
        verdict = judge(tool, arguments, phase, scope)
        told(tool, arguments, verdict, str(event.get("agent_type") or event.get("agent_id") or ""))
        return answer(verdict)

    return before_tool


def answer(verdict: Verdict) -> dict[str, Any]:
    """The verdict as the SDK expects it; a refusal tells the model why and what to do instead."""
    why = verdict.reason if verdict.allow else f"traindx refuses: {verdict.reason}. Instead: {verdict.next_step}."
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecisionReason": why,
                                   "permissionDecision": "allow" if verdict.allow else "deny"}}


def after(reported: Reported | None = None, fetched: Callable[[str], None] | None = None) -> Hook:
    """The hook after every tool that worked: what it brought, without keys; a subagent's report with what of it stands.
    `fetched` is told each page."""

    async def after_tool(event: Mapping[str, Any], tool_use: str | None, context: Any) -> dict[str, Any]:
        brought, asked = event.get("tool_response"), event.get("tool_input")
        if fetched is not None and event.get("tool_name") == "WebFetch" and isinstance(asked, Mapping):
            fetched(str(asked.get("url", "")))
        clean = redacted_alike(brought)
        if reported is not None and event.get("tool_name") in ("Agent", "Task") and isinstance(clean, dict):
            clean = {**clean, "content": _checked(clean, event, reported)}
        if clean == brought:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": clean}}

    return after_tool


def _checked(brought: Mapping[str, Any], event: Mapping[str, Any], reported: Reported) -> list[dict[str, Any]]:
    content = brought.get("content")
    texts = [str(b.get("text", "")) for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    asked = event.get("tool_input")
    who = str(brought.get("agentType") or (asked.get("subagent_type") if isinstance(asked, Mapping) else ""))
    return [{"type": "text", "text": reported(who, "\n".join(t for t in texts if not t.startswith("<tools-used")))}]


def hooks(before: Hook, seconds: float = SECONDS, after_tool: Hook | None = None) -> dict[str, list[Any]]:
    """The SDK's hook table: one hook before every tool, one after; a failure of either blocks."""
    def every(one: Hook) -> list[Any]:
        return [sdk().HookMatcher(matcher=None, hooks=[one], timeout=seconds, on_failure="block")]

    return {"PreToolUse": every(before), "PostToolUse": every(after_tool or after())}
