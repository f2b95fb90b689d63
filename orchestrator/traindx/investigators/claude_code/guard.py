"""The hook before every tool call, subagents' included: the one predicate of `policy.py`, and nothing beside it.

It is registered with `on_failure="block"`, so that a hook that raises, answers nothing or takes too long denies. The
matcher names no tool: every call comes here. A second hook takes keys out of what a tool brought before the model sees
it: a file that may be read can still hold one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from traindx.investigators.claude_code.redaction import redacted_alike
from traindx.investigators.claude_code.sdk import sdk
from traindx.policy import Scope, Verdict, allowed

SECONDS = 30.0
"""For one judgement; a workspace of 20,000 files is searched for secrets in far less."""

STRUCTURED_OUTPUT = "StructuredOutput"
"""The CLI's own tool that hands an answer over. It reaches nothing, and the policy need not know it."""

Hook = Callable[[Mapping[str, Any], "str | None", Any], Awaitable[dict[str, Any]]]
Told = Callable[[str, Mapping[str, Any], Verdict, str], None]
"""Called with the tool, its arguments, the verdict and the subagent's id, "" for the main conversation."""


def judge(tool: str, arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    """Whether the call may happen."""
    if tool == STRUCTURED_OUTPUT:
        return Verdict(True, "hands the answer over")
    return allowed(tool, arguments, phase, scope)


def guard(phase: str, scope: Scope, told: Told) -> Hook:
    """The hook for one phase and one scope."""

    async def before_tool(event: Mapping[str, Any], tool_use: str | None, context: Any) -> dict[str, Any]:
        tool, arguments = str(event["tool_name"]), event["tool_input"]
        verdict = judge(tool, arguments, phase, scope)
        told(tool, arguments, verdict, str(event.get("agent_id") or ""))
        return answer(verdict)

    return before_tool


def answer(verdict: Verdict) -> dict[str, Any]:
    """The verdict as the SDK expects it; a refusal tells the model why and what to do instead."""
    why = verdict.reason if verdict.allow else f"traindx refuses: {verdict.reason}. Instead: {verdict.next_step}."
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecisionReason": why,
                                   "permissionDecision": "allow" if verdict.allow else "deny"}}


async def after_tool(event: Mapping[str, Any], tool_use: str | None, context: Any) -> dict[str, Any]:
    """What a tool brought, without keys; nothing is said where there were none."""
    brought = event.get("tool_response")
    clean = redacted_alike(brought)
    if clean == brought:
        return {}
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": clean}}


def hooks(hook: Hook, seconds: float = SECONDS) -> dict[str, list[Any]]:
    """The SDK's hook table with this hook before every tool and the redaction after; a failure of either blocks."""
    def every(one: Hook) -> list[Any]:
        return [sdk().HookMatcher(matcher=None, hooks=[one], timeout=seconds, on_failure="block")]

    return {"PreToolUse": every(hook), "PostToolUse": every(after_tool)}
